const load = async () => {
  const [{ Server }, { InitializeRequestSchema, isJSONRPCRequest, SUPPORTED_PROTOCOL_VERSIONS }] = await Promise.all([
    import('@modelcontextprotocol/sdk/server/index.js'),
    import('@modelcontextprotocol/sdk/types.js'),
  ]);
  return { Server, InitializeRequestSchema, isJSONRPCRequest, SUPPORTED_PROTOCOL_VERSIONS };
};

export type Sdk = Awaited<ReturnType<typeof load>>;

let loaded: Promise<Sdk> | undefined;

/** Loads the MCP library on first use, so that start-up does not wait for it. */
export const loadSdk = (): Promise<Sdk> => (loaded ??= load());
