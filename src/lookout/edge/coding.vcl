
# Which form of a document a reader gets (A15): gzip if it takes that, and likes it no less than the plain one. The
# server's own choice (lookout.api.negotiation), of weights from 0 to 1; nothing is compressed or unpacked here. Each form
# has a copy of its own.
sub vcl_recv {
    if (req.restarts == 0) {
        std.collect(req.http.Accept-Encoding);
        unset req.http.X-Edge-Coding;
        if (req.http.Accept-Encoding ~ "^.{1,256}$") {
            # Each element as name=weight, and one that is none of RFC 9110's as nothing.
            set req.http.X-Edge-Codings = regsuball(std.tolower(req.http.Accept-Encoding),
                "(?:^|,)[ \t]*(?:([!#$%&'*+.^_`|~0-9a-z-]+)(?:[ \t]*;[ \t]*q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?))?[ \t]*(?=,|$)|[^,]*)",
                ",\1=\2");
            set req.http.X-Edge-Codings = regsuball(req.http.X-Edge-Codings, ",x-gzip=", ",gzip=");
            var.set_real("other", 0.0);
            if (req.http.X-Edge-Codings ~ ",\*=") {
                var.set_real("other", std.real(regsub(req.http.X-Edge-Codings, "^.*,\*=([0-9.]*).*$", "\1"), 1.0));
            }
            var.set_real("gzip", var.get_real("other"));
            if (req.http.X-Edge-Codings ~ ",gzip=") {
                var.set_real("gzip", std.real(regsub(req.http.X-Edge-Codings, "^.*,gzip=([0-9.]*).*$", "\1"), 1.0));
            }
            var.set_real("identity", var.get_real("other"));
            if (req.http.X-Edge-Codings ~ ",identity=") {
                var.set_real("identity",
                    std.real(regsub(req.http.X-Edge-Codings, "^.*,identity=([0-9.]*).*$", "\1"), 1.0));
            }
            if (var.get_real("gzip") > 0.0 && var.get_real("gzip") >= var.get_real("identity")) {
                set req.http.X-Edge-Coding = "gzip";
            }
            unset req.http.X-Edge-Codings;
        }
    }
}

sub vcl_hash {
    hash_data(req.http.X-Edge-Coding);
}

sub vcl_backend_fetch {
    unset bereq.http.Accept-Encoding;
    if (bereq.http.X-Edge-Coding) {
        set bereq.http.Accept-Encoding = bereq.http.X-Edge-Coding;
    }
}
