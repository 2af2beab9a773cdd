            # Of one that is there twice the lower weight counts, here of the first and the last.
            if (req.http.X-Edge-Codings ~ ",@pattern=") {
                var.set_real("@coding",
                    std.real(regsub(req.http.X-Edge-Codings, "^.*,@pattern=([01](?:\.[0-9]+)?).*$", "\1"), 1.0));
                var.set_real("first",
                    std.real(regsub(req.http.X-Edge-Codings, "^.*?,@pattern=([01](?:\.[0-9]+)?).*$", "\1"), 1.0));
                if (var.get_real("first") < var.get_real("@coding")) {
                    var.set_real("@coding", var.get_real("first"));
                }
            }
