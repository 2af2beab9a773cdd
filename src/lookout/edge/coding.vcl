
# Which form of a document a reader gets (A15): gzip if it takes that, and likes it no less than the plain one. It is the
# server's own choice (lookout.api.negotiation); nothing is compressed or unpacked here, and each form has its own copy.
sub vcl_recv {
    if (req.restarts == 0) {
        std.collect(req.http.Accept-Encoding);
        unset req.http.X-Edge-Coding;
        if (req.http.Accept-Encoding !~ "^.{1,256}$") {
        } elseif (req.http.Accept-Encoding !~ ";") {
            # Nothing has a weight, as with every browser.
            if (req.http.Accept-Encoding ~ "(?i)(?:^|,)[ \t]*(?:gzip|x-gzip|\*)[ \t]*(?:,|$)") {
                set req.http.X-Edge-Coding = "gzip";
            }
        } else {
            # Each element as name=weight, or as nothing if RFC 9110 has no such form.
            set req.http.X-Edge-Codings = regsuball(regsuball(std.tolower(req.http.Accept-Encoding),
                "(?:^|,)[ \t]*(?:([!#$%&'*+.^_`|~0-9a-z-]+)(?:[ \t]*;[ \t]*q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?))?[ \t]*(?=,|$)|[^,]*)",
                ",\1=\2"), ",x-gzip=", ",gzip=");
            var.set_real("other", 0.0);
@other
            var.set_real("gzip", var.get_real("other"));
@gzip
            var.set_real("identity", var.get_real("other"));
@identity
            if (var.get_real("gzip") > 0.0 && var.get_real("gzip") >= var.get_real("identity")) {
                set req.http.X-Edge-Coding = "gzip";
            }
            if (req.http.X-Edge-Codings ~ ",identity=0(?:\.0*)?(?:,|$)"
                || (req.http.X-Edge-Codings ~ ",\*=0(?:\.0*)?(?:,|$)" && req.http.X-Edge-Codings !~ ",identity=")) {
                set req.http.X-Edge-Needs-Gzip = "yes";
            }
            unset req.http.X-Edge-Codings;
        }
        # Vary goes by what is left of it.
        unset req.http.Accept-Encoding;
        if (req.http.X-Edge-Coding) {
            set req.http.Accept-Encoding = req.http.X-Edge-Coding;
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
