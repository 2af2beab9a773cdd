
# What is asked, and for which path (E1). A path is recognised percent-decoded, as the server does it, and without its
# query string; what goes on from here has the one plain path, so no spelling has a copy or a limit of its own.
sub vcl_recv {
    if (req.restarts == 0) {
        # RFC 9112: a method is a token, a target has no other characters, and there is one Host, with a name in it.
        if (req.method !~ "^[!#$%&'*+.^_`|~0-9A-Za-z-]++$" || req.url ~ "[^!-~]"
            || (!req.http.Host && req.proto == "HTTP/1.1")
            || (req.http.Host && req.http.Host
                !~ "^(?=.{1,300}$)(?:\[[0-9A-Fa-f.]*+:[0-9A-Fa-f:.]*+\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})++)(?::[0-9]*+)?$")
            || (req.http.Host ~ "^\["
                && std.ip(regsub(req.http.Host, "^\[(.*)\].*$", "\1"), "0.0.0.0", resolve = false) == "0.0.0.0")) {
            return (synth(400));
        }
        if (req.method == "CONNECT") {
            return (synth(405));
        }
        # Some send the whole address; Varnish has dealt with http. All else that is no path is malformed, but for the
        # asterisk of OPTIONS.
        if (req.url
            ~ "(?i)^https://(?:\[[0-9a-f:.]++\]|(?:[a-z0-9._~!$&'()*+,;=-]|%[0-9a-f]{2})++)(?::[0-9]*+)?(?:[/?]|$)") {
            set req.url = regsub(req.url, "^[^/]*+//[^/?]++/?", "/");
        } elseif (req.url == "*" && req.method == "OPTIONS") {
            return (synth(204));
        } elseif (req.url !~ "^/") {
            return (synth(400));
        }
        if (req.url ~ "#") {
            return (synth(400));
        }
        set req.url = regsub(req.url, "\?.*$", "");
        # Bounded and possessive, since Varnish gives up on what is too long, or could go back too often: then a long path
        # would be a 503. No route has other characters than these.
        if (req.url ~ "^(?:[^%]|%(?:2[1-9A-Fa-f]|[3-6][0-9A-Fa-f]|7[0-9A-Ea-e])){1,@longest}+$") {
            set req.url = blob.transcode(decoding = URL, encoded = req.url);
        }
        # The operator's own: those alone are not under /api/.
        if (req.url != "@live" && req.url != "@history"
            && req.url !~ "^/(?:(?:assets|badge|feed|schemas)/[\w./-]{1,100}+|badge\.svg|embed\.js|feed\.atom)?$"
            && req.url !~ "^/(?:about|badge|openapi|status|summary)\.json$") {
            return (synth(404));
        }
    }
}

sub vcl_synth {
    if (resp.status == 405) {
        set resp.http.Allow = "GET, HEAD, OPTIONS";
    }
    if (resp.status == 404) {
        set resp.http.Content-Type = "application/json; charset=utf-8";
        set resp.http.Cache-Control = "no-store";
        set resp.http.X-Content-Type-Options = "nosniff";
        unset resp.http.Server;
        unset resp.http.X-Varnish;
        set resp.body = """{"message":"no such route"}""";
        return (deliver);
    }
}
