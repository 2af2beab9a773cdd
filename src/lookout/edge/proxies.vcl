
# The caller behind trusted proxies (E6). Each proxy appends whom it heard, so the list is believed from its end, as far
# as trusted proxies wrote it: here up to five of them.
acl trusted {
@networks
}

sub believe_one {
    if (req.http.X-Edge-Hops != "" && std.ip(req.http.X-Edge-Caller, "0.0.0.0", resolve = false) ~ trusted) {
        set req.http.X-Edge-Hop = regsub(req.http.X-Edge-Hops, "^.*,", "");
        set req.http.X-Edge-Hops = regsub(req.http.X-Edge-Hops, ",?[^,]*$", "");
        # [address]:port, address:port, address%zone and IPv4 in IPv6
        set req.http.X-Edge-Hop = regsub(req.http.X-Edge-Hop, "^\[([^\]]*)\].*$", "\1");
        set req.http.X-Edge-Hop = regsub(req.http.X-Edge-Hop, "^([0-9.]+):[0-9]+$", "\1");
        set req.http.X-Edge-Hop = regsub(req.http.X-Edge-Hop, "%.*$", "");
        set req.http.X-Edge-Hop = regsub(req.http.X-Edge-Hop, "^(?i)::ffff:([0-9.]+)$", "\1");
        set req.http.X-Edge-Hop = std.ip(req.http.X-Edge-Hop, "0.0.0.0", resolve = false);
        if (req.http.X-Edge-Hop == "0.0.0.0") {
            set req.http.X-Edge-Hops = "";
        } else {
            set req.http.X-Edge-Caller = req.http.X-Edge-Hop;
        }
    }
}

sub vcl_recv {
    if (req.restarts == 0 && client.ip ~ trusted) {
        # The end of it is enough. Varnish has appended the peer itself.
        set req.http.X-Edge-Hops = regsub(req.http.X-Forwarded-For, "^.*(.{4096})$", "\1");
        set req.http.X-Edge-Hops = regsub(req.http.X-Edge-Hops, ",?[^,]*$", "");
        set req.http.X-Edge-Hops = regsuball(req.http.X-Edge-Hops, "[ \t]", "");
        set req.http.X-Edge-Hops = regsuball(req.http.X-Edge-Hops, "^,+|,+$|,+(?=,)", "");
        call believe_one;
        call believe_one;
        call believe_one;
        call believe_one;
        call believe_one;
    }
    unset req.http.X-Edge-Hop;
    unset req.http.X-Edge-Hops;
}
