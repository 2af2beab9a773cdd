# The edge of Lookout, in front of its server: the contract's clauses E1 to E4 and E6.
# `lookout edge-config` prints this from the settings; change those, and print it again.
vcl 4.1;

import blob;
import purge;
import std;
import var;
import vsthrottle;

backend origin {
    .host = "@host";
    .port = "@port";
    .connect_timeout = 1s;
    .first_byte_timeout = 3s;
    .between_bytes_timeout = 3s;
}

# What the requests themselves say in the headers that are used in here is not believed.
sub vcl_recv {
    if (req.restarts == 0) {
        # Varnish waits for a body before it says anything, with a thread for each; nobody needs to send one here.
        if (req.http.Transfer-Encoding || req.http.Content-Length ~ "[^0]") {
            return (synth(413));
        }
        unset req.http.X-Edge-Codings;
        unset req.http.X-Edge-Forward;
        unset req.http.X-Edge-Grace;
        unset req.http.X-Edge-Minute;
        unset req.http.X-Edge-Needs-Gzip;
        unset req.http.X-Edge-Network;
        unset req.http.X-Edge-Tag;
        unset req.http.X-Edge-Tags;
        unset req.http.X-Edge-Try;
        # None is that long; it is remembered, and copied.
        if (req.http.Origin ~ "^.{513}") {
            unset req.http.Origin;
        }
        unset req.http.Range;  # nobody gets a part (A15), and an empty one would make Varnish fail
        set req.http.X-Edge-Caller = client.ip;
    }
}

sub vcl_synth {
    if (resp.status == 413) {
        set resp.http.Connection = "close";  # or it would still read the body first
    }
}

# The server hears of one caller, and of one host whatever the reader called it. Its head may be as long as a reader's, so
# what is added here is made up for by what it has no use for.
sub vcl_backend_fetch {
    set bereq.http.Host = "@authority";
    set bereq.http.X-Forwarded-For = bereq.http.X-Edge-Caller;
    unset bereq.http.X-Edge-Caller;
    unset bereq.http.X-Edge-Forward;
    unset bereq.http.X-Edge-Grace;
    unset bereq.http.X-Edge-Network;
    unset bereq.http.Accept;
    unset bereq.http.User-Agent;
    unset bereq.http.X-Varnish;
}
