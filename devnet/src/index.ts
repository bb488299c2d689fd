export { type Contract, type ContractName, type Contracts, compileAhead } from './evm/compile_contracts.ts'
export type { EvmClient, Token, TokenSymbol } from './evm/evm_network.ts'
export { connectRpc, type Rpc, RpcError } from './json_rpc.ts'
export type { DevnetCurrency, DevnetNetwork, Replacement } from './local_network.ts'
export type { KeptMail, Mailbox } from './mailbox/open_mailbox.ts'
export { removePostgres } from './postgres/cluster_place.ts'
export { findPgbench } from './postgres/find_pgbench.ts'
export { type Filling, makeClusterTemplates } from './postgres/make_ahead.ts'
export {
  type Postgres,
  type PostgresOptions,
  startPostgres,
  stopPostgresIn,
} from './postgres/start_postgres.ts'
export { type LockFile, tryLock } from './processes/lock_file.ts'
export { DamagedChainFile } from './simulated/chain_file.ts'
export type { SubmitTrouble, Troubles } from './simulated/troubles.ts'
export { SurfpoolSilent } from './solana/vm.ts'
export { type Devnet, type DevnetOptions, loadNetworks, startDevnet, stopDevnetIn } from './world.ts'
