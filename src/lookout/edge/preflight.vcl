
# Preflights (A7). A browser's script that has a copy asks by If-None-Match, and so sends one first: it is answered here,
# whether the server answers or not. Names that are made up belong to nothing (E1), so of routes that have names the
# server is asked, if it can be.
sub vcl_recv {
    if (req.method == "OPTIONS" && req.url !~ "^/(?:assets|badge|feed|schemas)/") {
        return (synth(204));
    }
}

sub vcl_backend_error {
    if (bereq.method == "OPTIONS") {
        return (abandon);
    }
}

sub vcl_synth {
    if (req.method == "OPTIONS" && (resp.status == 204 || resp.status == 503)) {
        set resp.status = 204;
        set resp.reason = "No Content";
@headers
        unset resp.http.Server;
        unset resp.http.X-Varnish;
        return (deliver);
    }
}
