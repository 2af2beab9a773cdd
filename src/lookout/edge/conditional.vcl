
# If-None-Match (A5). Of the list its whole tags remain, one after the other with their quotation marks: none of them
# holds such a mark, so what is found between two is a tag. The server names the tags of all forms of a document.
# A list of more than 64 KiB is not read: that would take long.
sub vcl_recv {
    std.collect(req.http.If-None-Match);
    if (req.http.If-None-Match ~ "^(?:.{256}){256}") {
        unset req.http.If-None-Match;
    }
}

sub vcl_deliver {
    if (resp.status == 200 && resp.http.ETag && req.http.If-None-Match) {
        set req.http.X-Edge-Tags = regsuball(req.http.If-None-Match,
            {"(?:^|,)[ \t]*+(?:W/)?("[^"]*+")(?=[ \t]*+(?:,|$))|."}, "\1");
        set req.http.X-Edge-Tag = regsub(resp.http.ETag, "^W/", "");
        if (req.http.If-None-Match !~ "^[ \t]*\*[ \t]*$" && !std.strstr(req.http.X-Edge-Tags, req.http.X-Edge-Tag)) {
            # Of another form.
            set req.http.X-Edge-Tag = regsub(resp.http.X-Lookout-Etags, {"^("[^"]*").*$"}, "\1");
            if (!std.strstr(req.http.X-Edge-Tags, req.http.X-Edge-Tag)) {
                set req.http.X-Edge-Tag = regsub(resp.http.X-Lookout-Etags, {"^.*("[^"]*")$"}, "\1");
                if (!std.strstr(req.http.X-Edge-Tags, req.http.X-Edge-Tag)) {
                    unset req.http.X-Edge-Tag;
                }
            }
        }
        if (req.http.X-Edge-Tag ~ ".") {
            set resp.status = 304;
            set resp.reason = "Not Modified";
            set resp.http.ETag = req.http.X-Edge-Tag;
            unset resp.http.Content-Encoding;
            unset resp.http.Content-Length;
            unset resp.http.Content-Type;
            unset resp.http.X-Content-Type-Options;
        }
    }
    unset resp.http.X-Lookout-Etags;
    # Varnish would compare by itself what is left of these.
    unset req.http.If-None-Match;
    unset req.http.If-Modified-Since;
}
