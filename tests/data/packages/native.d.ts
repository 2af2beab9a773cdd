declare module "react-native" {
  export const AppState: {
    currentState: string;
    addEventListener(type: "change", listener: (state: string) => void): { remove(): void };
  };
}
declare module "@react-native-community/netinfo" {
  const NetInfo: { addEventListener(listener: (state: { isConnected: boolean | null }) => void): () => void };
  export default NetInfo;
}
