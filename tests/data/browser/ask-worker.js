async (options) => {
    await navigator.serviceWorker.register("/worker.js");
    const { active } = await navigator.serviceWorker.ready;
    return new Promise((resolve) => {
        navigator.serviceWorker.addEventListener("message", ({ data }) => resolve(data));
        active.postMessage(options);
    });
}