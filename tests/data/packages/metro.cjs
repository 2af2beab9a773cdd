const Metro = require("metro");
const { runNative } = require("./native.cjs");
const run = async (hasExports) => {
  const config = await Metro.loadConfig({ cwd: __dirname }, {
    projectRoot: __dirname, watchFolders: [__dirname], cacheStores: [],
    resolver: { unstable_enablePackageExports: hasExports, useWatchman: false },
    transformer: { babelTransformerPath: require.resolve("@react-native/metro-babel-transformer") },
    serializer: { getPolyfills: () => [] },
    reporter: { update() {} },
  });
  const { code } = await Metro.runBuild(config, { entry: "entry.js", platform: "ios", dev: false, minify: true });
  runNative(code);
};
run(process.argv[2] === "exports");
