
# The shared cache (E3, E4). The times are those of the server's own Cache-Control:
#   - a copy is fresh for s-maxage;
#   - for stale-while-revalidate after that it is served while a new one is fetched in the background;
#   - for stale-if-error after s-maxage it is served if the server fails: one request tries, and those that come
#     meanwhile wait for it.
# After a failure the server is left alone for 5 s if there is a copy to serve, and for 15 s nobody waits for it.
# Only a whole 200 ever replaces a copy. X-Edge-Try is 1 in a request that found a copy of the last kind and tries the
# server, and 2 in one that has to be content with the copy.
# There is a copy for each Origin (E4). A request that has none gets that of another Origin if the server fails: the one
# that was last delivered while it was fresh, which is remembered for each path and form. One that takes gzip gets the
# plain form then, if there is no other. (Nothing is unpacked here: one that takes the plain form alone needs a copy of
# that.)
sub vcl_recv {
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
    unset req.http.Authorization;
    unset req.http.Cookie;
    # A restart keeps the grace that was set before it.
    if (req.http.X-Edge-Try == "1") {
        set req.grace = std.duration(req.http.X-Edge-Grace, 0s);
    } elseif (req.http.X-Edge-Try) {
        set req.grace = 365d;
    }
    return (hash);
}

sub vcl_hash {
    hash_data(req.url);
    if (req.url ~ "^/api/") {
        hash_data(req.http.Origin);
    }
    return (lookup);
}

sub vcl_hit {
    # The clock was set back since it came, and it would be fresh for as long. (Whoever waited for a copy is a few
    # seconds older than it.)
    if (obj.age < -60s) {
        purge.hard();
        return (restart);
    }
    if (!req.http.X-Edge-Try && obj.ttl + std.duration(obj.http.X-Edge-Grace, 0s) < 0s
        && vsthrottle.blocked("failing " + req.url, 1, 30s, 15s) == 0s) {
        set req.http.X-Edge-Try = "1";
        set req.http.X-Edge-Grace = obj.http.X-Edge-Grace;
        return (restart);
    }
}

sub vcl_miss {
    if (vsthrottle.blocked("failing " + req.url, 1, 30s, 15s) > 0s) {
        # It has waited for somebody else's try, which failed.
        if (req.http.X-Edge-Try == "1") {
            set req.http.X-Edge-Try = "2";
            return (restart);
        }
        call borrow;
    }
    # The copy of another Origin is over, too.
    if (req.http.X-Edge-Try == "borrowed") {
        var.global_set(req.url + " " + req.http.X-Edge-Coding, "");
        return (synth(503));
    }
    set req.http.X-Edge-Forward = "miss";
    if (req.http.X-Edge-Try) {
        set req.http.X-Edge-Forward = "stale";
    }
}

sub vcl_pass {
    set req.http.X-Edge-Forward = "method";
}

# Look the copy of another Origin up, if one is remembered.
sub borrow {
    if (req.http.X-Edge-Try != "borrowed" && req.http.X-Edge-Coding && !req.http.X-Edge-Needs-Gzip
        && var.global_get(req.url + " " + req.http.X-Edge-Coding) !~ "^=") {
        unset req.http.X-Edge-Coding;
        unset req.http.Accept-Encoding;
    }
    if (req.http.X-Edge-Try != "borrowed" && var.global_get(req.url + " " + req.http.X-Edge-Coding) ~ "^=") {
        set req.http.X-Edge-Try = "borrowed";
        set req.http.Origin = regsub(var.global_get(req.url + " " + req.http.X-Edge-Coding), "^=", "");
        if (req.http.Origin == "") {
            unset req.http.Origin;
        }
        return (restart);
    }
}

# A fetch that nobody waits for; but those who wait for another one would wait for this one next.
sub vcl_backend_fetch {
    if (bereq.is_bgfetch && vsthrottle.blocked("failed " + bereq.url, 1, 10s, 5s) > 0s) {
        return (abandon);
    }
}

# Remember the failure, and leave the copy there is as it was. A bucket is blocked when it is found empty: the first
# call empties it.
sub failed {
    if (vsthrottle.is_denied("failed " + bereq.url, 1, 10s, 5s)) { }
    if (vsthrottle.is_denied("failed " + bereq.url, 1, 10s, 5s)) { }
    if (vsthrottle.is_denied("failing " + bereq.url, 1, 30s, 15s)) { }
    if (vsthrottle.is_denied("failing " + bereq.url, 1, 30s, 15s)) { }
    if (bereq.is_bgfetch || bereq.http.X-Edge-Try == "1"
        || var.global_get(bereq.url + " " + bereq.http.X-Edge-Coding) ~ "^="
        || (!bereq.http.X-Edge-Needs-Gzip && var.global_get(bereq.url + " ") ~ "^=")) {
        return (abandon);
    }
}

sub vcl_backend_response {
    if (bereq.uncacheable) {
        return (deliver);
    }
    # The operator's own routes say how things are: kept for as long as they allow, and never a moment longer.
    if (bereq.url !~ "^/api/") {
        set beresp.grace = 0s;
        if (beresp.status == 200 && beresp.ttl > 0s && beresp.http.ETag && beresp.http.Cache-Control ~ "(?i)\bmax-age="
            && beresp.http.Cache-Control !~ "(?i)\b(?:no-store|no-cache|private)\b") {
            unset beresp.http.Set-Cookie;
            set beresp.do_stream = false;
        } else {
            set beresp.uncacheable = true;
            set beresp.ttl = 1s;
        }
        return (deliver);
    }
    if (beresp.status == 200 && beresp.ttl > 0s && beresp.http.ETag && beresp.http.Content-Length != "0"
        && beresp.http.Content-Type ~ "(?i)^application/json\b" && beresp.http.Cache-Control ~ "(?i)\bs-maxage="
        && beresp.http.Cache-Control !~ "(?i)\b(?:no-store|no-cache|private)\b") {
        unset beresp.http.Set-Cookie;
        set beresp.http.X-Edge-Grace = "0s";
        if (beresp.http.Cache-Control ~ "(?i)\bstale-while-revalidate=\d") {
            set beresp.http.X-Edge-Grace =
                regsub(beresp.http.Cache-Control, "(?i)^.*\bstale-while-revalidate=(\d+).*$", "\1s");
        }
        set beresp.grace = std.duration(beresp.http.X-Edge-Grace, 0s);
        if (std.duration(regsub(beresp.http.Cache-Control, "(?i)^.*\bstale-if-error=(\d+).*$", "\1s"), 0s)
            > beresp.grace) {
            set beresp.grace =
                std.duration(regsub(beresp.http.Cache-Control, "(?i)^.*\bstale-if-error=(\d+).*$", "\1s"), 0s);
        }
        # Until its last byte is there it might still break off.
        set beresp.do_stream = false;
        return (deliver);
    }
    # What it refuses one reader says nothing about the server: nobody can make it count as failing for all.
    if (beresp.status != 400 && beresp.status != 429 && beresp.status != 431) {
        call failed;
    } elseif (bereq.is_bgfetch || bereq.http.X-Edge-Try == "1") {
        return (abandon);
    }
    # Delivered, and not kept; those who come within the second ask for themselves and do not queue.
    set beresp.uncacheable = true;
    set beresp.ttl = 1s;
    set beresp.grace = 0s;
    return (deliver);
}

sub vcl_backend_error {
    if (!bereq.uncacheable) {
        if (bereq.url ~ "^/api/") {
            call failed;
        }
        set beresp.uncacheable = true;
        set beresp.ttl = 1s;
        set beresp.grace = 0s;
    }
    set beresp.http.Content-Type = "application/json; charset=utf-8";
    set beresp.http.Cache-Control = "no-store";
    set beresp.http.Retry-After = "@retry_s";
    set beresp.http.X-Content-Type-Options = "nosniff";
@backend_headers
    unset beresp.http.Server;
    set beresp.body = """{"message":"the server does not answer"}""";
    return (deliver);
}

sub vcl_synth {
    if (resp.status == 503) {
        if (req.http.X-Edge-Try == "1") {
            set req.http.X-Edge-Try = "2";
            return (restart);
        }
        call borrow;
        set resp.http.Retry-After = "@retry_s";
        set resp.reason = "the server does not answer";
@headers
    }
    set resp.http.Content-Type = "application/json; charset=utf-8";
    set resp.http.Cache-Control = "no-store";
    set resp.http.X-Content-Type-Options = "nosniff";
    unset resp.http.Server;
    unset resp.http.X-Varnish;
    set resp.body = {"{"message":""} + resp.reason + """"}""";
    return (deliver);
}

sub vcl_deliver {
    unset resp.http.Accept-Ranges;
    unset resp.http.Via;
    unset resp.http.X-Edge-Grace;
    unset resp.http.X-Varnish;
    # Where it comes from (RFC 9211).
    set resp.http.Cache-Status = "lookout-edge; hit";
    if (req.http.X-Edge-Forward) {
        set resp.http.Cache-Status = "lookout-edge; fwd=" + req.http.X-Edge-Forward;
    }
    if (!obj.uncacheable) {
        if (obj.hits == 0) {
            set resp.http.Cache-Status = resp.http.Cache-Status + "; stored";
        }
        if (obj.ttl < 0s) {
            set resp.http.Cache-Status = resp.http.Cache-Status + "; ttl=" + std.integer(duration = obj.ttl - 0.999s);
        } else {
            set resp.http.Cache-Status = resp.http.Cache-Status + "; ttl=" + std.integer(duration = obj.ttl);
            # New, or replaced in the background before this: its last byte is there.
            if (obj.hits <= 1 && req.url ~ "^/api/") {
                var.global_set(req.url + " " + req.http.X-Edge-Coding, "=" + req.http.Origin);
            }
        }
    }
}
