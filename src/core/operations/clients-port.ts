import type {
  ClientList,
  ConnectClientInput,
  ConnectionPlan,
  ConnectReceipt,
  DisconnectClientInput,
  DisconnectReceipt,
  PlanConnectionInput,
  ClientVerification,
  VerifyClientInput,
} from '../../contract/client.ts';

/**
 * The programs on this machine that can be connected (R-CONN). What it takes to know and change them is handed in: it is files and
 * programs of others.
 */
export interface ClientConnections {
  list(): Promise<ClientList>;
  plan(input: PlanConnectionInput): Promise<ConnectionPlan>;
  connect(input: ConnectClientInput): Promise<ConnectReceipt>;
  disconnect(input: DisconnectClientInput): Promise<DisconnectReceipt>;
  verify(input: VerifyClientInput): Promise<ClientVerification>;
}
