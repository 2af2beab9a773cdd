async ([url, options]) => {
    try {
        const response = await fetch(url, options);
        const body = await response.text();
        return {code: response.status, etag: response.headers.get("ETag"), body, error: null};
    } catch (error) {
        return {code: null, etag: null, body: null, error: error.name};
    }
}