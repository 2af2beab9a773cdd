
# The rate limit (E2), by caller and path: @limit requests in a minute of the clock pass, and one more is the first that
# is refused for @ban. The operator's own routes count together, as one path; the page's files, of which a single view
# asks for all, by the first letter of their name, so that a made-up name or folder has no limit of its own.
#
# A bucket of vsthrottle fills up again little by little. One of this minute's buckets takes longer than the minute to
# regain its first token, so it only ever empties; and because that time grows with its size, the limit is shared out
# over several, of which most callers touch the first alone. Each is forgotten when it would be full again.
sub vcl_recv {
    if (req.restarts == 0) {
        # IPv6 counts by /64: the first four groups, written out.
        set req.http.X-Edge-Network = regsub(req.http.X-Edge-Caller, "%.*$", "");
        if (req.http.X-Edge-Network ~ ":") {
            set req.http.X-Edge-Network = regsub(req.http.X-Edge-Network,
                "^([0-9a-f]*)::([0-9a-f]+(?::[0-9a-f]+){4})$", "\1:0:0:\2");
            set req.http.X-Edge-Network = regsub(req.http.X-Edge-Network,
                "^::([0-9a-f]+(?::[0-9a-f]+){5})$", "0:0:\1");
            set req.http.X-Edge-Network = regsub(req.http.X-Edge-Network, "::.*$", ":0:0:0:0:");
            set req.http.X-Edge-Network = regsub(req.http.X-Edge-Network, "^:", "0:");
            set req.http.X-Edge-Network = regsub(req.http.X-Edge-Network, "^((?:[0-9a-f]+:){4}).*$", "\1");
        }
        set req.http.X-Edge-Network = req.http.X-Edge-Network + " " + regsub(
            regsub(req.url, "^/(?!api/|assets/).*$", "own"), "^/assets/(?:\w+/)?(.).*$", "/assets/\1");
        if (vsthrottle.blocked("ban " + req.http.X-Edge-Network, 1, @forgotten, @ban) > 0s) {
            return (synth(429));
        }
        set req.http.X-Edge-Minute = std.integer(time = now) / @minute_s + " " + req.http.X-Edge-Network;
        if (@exhausted) {
            # The first empties the bucket, if it is not, and the second finds it empty: that is what starts a ban.
            if (vsthrottle.is_denied("ban " + req.http.X-Edge-Network, 1, @forgotten, @ban)) { }
            if (vsthrottle.is_denied("ban " + req.http.X-Edge-Network, 1, @forgotten, @ban)) { }
            return (synth(429));
        }
        unset req.http.X-Edge-Minute;
    }
}

sub vcl_synth {
    if (resp.status == 429) {
        set resp.http.Content-Type = "text/plain; charset=utf-8";
        set resp.http.Cache-Control = "no-store";
        set resp.http.X-Content-Type-Options = "nosniff";
        set resp.http.Retry-After = std.integer(
            duration = vsthrottle.blocked("ban " + req.http.X-Edge-Network, 1, @forgotten, @ban) + 0.999s, fallback = 60);
        if (resp.http.Retry-After == "0") {
            set resp.http.Retry-After = "1";  # the ban has ended since
        }
        unset resp.http.Server;
        unset resp.http.X-Varnish;
        set resp.body = """error code: 1015

You are being rate limited. Try again in """ + resp.http.Retry-After + """ s.
""";
        return (deliver);
    }
}
