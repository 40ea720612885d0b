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
 * Connects the clients on this machine to the memory (R-CONN). The implementation reads and changes files of other programs, so
 * the core does not import it but receives it as a dependency.
 */
export interface ClientConnections {
  list(): Promise<ClientList>;
  plan(input: PlanConnectionInput): Promise<ConnectionPlan>;
  connect(input: ConnectClientInput): Promise<ConnectReceipt>;
  disconnect(input: DisconnectClientInput): Promise<DisconnectReceipt>;
  verify(input: VerifyClientInput): Promise<ClientVerification>;
}
