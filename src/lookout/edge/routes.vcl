
# Paths (E1). The endpoints are recognised percent-decoded, as the server does it, and without their query string; what
# goes on from here has the one plain path, so no spelling has a copy or a limit of its own.
sub vcl_recv {
    if (req.restarts == 0) {
        # Some send the whole address; Varnish has dealt with http alone.
        set req.url = regsub(req.url, "^(?i)https://[^/?]+(?=/)", "");
        # Bounded and possessive, since Varnish gives up on what is too long, or could go back too often: then a long path
        # would be a 503.
        if (req.url ~ "^(?:[^%?]|%(?!00)[0-9A-Fa-f]{2}){1,@longest}+(?:\?|$)") {
            if (blob.transcode(decoding = URL, encoded = regsub(req.url, "\?.*$", "")) == "@live") {
                set req.url = "@live";
            } elseif (blob.transcode(decoding = URL, encoded = regsub(req.url, "\?.*$", "")) == "@history") {
                set req.url = "@history";
            }
        }
        # The operator's own: those alone are not under /api/.
        if (req.url ~ "^/(?:(?:assets|badge|schemas)/[\w./-]{1,100}+|badge\.svg|feed\.atom)?(?:\?|$)"
            || req.url ~ "^/(?:badge|openapi|status|summary)\.json(?:\?|$)") {
            set req.url = regsub(req.url, "\?.*$", "");
        } elseif (req.url != "@live" && req.url != "@history") {
            return (synth(404));
        }
    }
}

sub vcl_synth {
    if (resp.status == 404) {
        set resp.http.Content-Type = "application/json; charset=utf-8";
        set resp.http.Cache-Control = "no-store";
        unset resp.http.Server;
        unset resp.http.X-Varnish;
        set resp.body = """{"message":"no such route"}""";
        return (deliver);
    }
}
