const load = async () => {
  const [{ Server }, { InitializeRequestSchema, isJSONRPCRequest, SUPPORTED_PROTOCOL_VERSIONS }] = await Promise.all([
    import('@modelcontextprotocol/sdk/server/index.js'),
    import('@modelcontextprotocol/sdk/types.js'),
  ]);
  return { Server, InitializeRequestSchema, isJSONRPCRequest, SUPPORTED_PROTOCOL_VERSIONS };
};

export type Sdk = Awaited<ReturnType<typeof load>>;

let loaded: Promise<Sdk> | undefined;

/** The MCP library, read when the first client comes: the start need not wait for it, and a program without agents never does. */
export const loadSdk = (): Promise<Sdk> => (loaded ??= load());
