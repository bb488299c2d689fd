import { workerData } from 'node:worker_threads'
import { loadSurfpool } from './surfpool.ts'
import type { FromVm, ToVm, VmAccount, VmLine, VmOutcome, VmRun } from './vm_messages.ts'

/**
 * The other end of vm.ts. The machine is told what the accounts of a transaction hold, simulates it, and says what they
 * hold afterwards: its own state is of no account, so that nothing is lost with it.
 */
const { port, wake } = workerData as VmLine

function tell(message: FromVm): void {
  port.postMessage(message)
  Atomics.add(wake, 0, 1)
  Atomics.notify(wake, 0)
}

const surfpool = loadSurfpool()
if (surfpool === null) throw new Error('Surfpool is not installed')
const surfnet = surfpool.Surfnet.startWithConfig({ offline: true, blockProductionMode: 'manual' })

/** It tells of a dozen events a second, and stands still once a thousand of them were taken by nobody. */
setInterval(() => surfnet.drainEvents(), 250).unref()

/** What the machine was told, so that it is told only what has changed. */
const told = new Map<string, VmAccount>()

const NOBODY = '1'.repeat(32)

function set(address: string, account: VmAccount | null): void {
  const before = told.get(address)
  if (account === null) {
    if (before === undefined) return
    surfnet.setAccount(address, 0, [], NOBODY)
    told.delete(address)
    return
  }
  const isSame =
    before !== undefined &&
    before.lamports === account.lamports &&
    before.owner === account.owner &&
    before.data === account.data
  if (isSame) return
  const { lamports, data, owner } = account
  surfnet.setAccount(address, exactNumber(lamports), [...Buffer.from(data, 'base64')], owner)
  told.set(address, account)
}

/** The machine takes numbers as JavaScript has them. */
function exactNumber(lamports: bigint): number {
  if (lamports > BigInt(Number.MAX_SAFE_INTEGER)) throw new Error(`${lamports} lamports are no exact number`)
  return Number(lamports)
}

type Simulated = {
  readonly err: unknown
  readonly logs: readonly string[] | null
  readonly unitsConsumed: number
  readonly accounts:
    | readonly ({ lamports: number; owner: string; data: readonly [string, string] } | null)[]
    | null
}

async function run({ wire, accounts, written }: VmRun): Promise<VmOutcome> {
  for (const [address, account] of accounts) set(address, account)
  const options = {
    encoding: 'base64',
    replaceRecentBlockhash: true,
    sigVerify: false,
    commitment: 'processed',
    accounts: { encoding: 'base64', addresses: written },
  }
  const { value } = await ask<{ value: Simulated }>('simulateTransaction', [wire, options])
  const { err, logs, unitsConsumed, accounts: after } = value
  return {
    err,
    logs: logs ?? [],
    unitsConsumed,
    accounts: (after ?? []).map((account) =>
      account === null || account.lamports === 0
        ? null
        : { lamports: BigInt(account.lamports), owner: account.owner, data: account.data[0] },
    ),
  }
}

async function ask<Result>(method: string, params: readonly unknown[]): Promise<Result> {
  const response = await fetch(surfnet.rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const answer = (await response.json()) as { result?: Result; error?: unknown }
  if (answer.result === undefined) throw new Error(JSON.stringify(answer.error))
  return answer.result
}

port.on('message', (message: ToVm) => {
  if ('stop' in message) {
    surfnet.stop()
    port.close()
    return
  }
  run(message.run).then(
    (outcome) => tell({ outcome }),
    (error) => tell({ failed: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  )
})
tell({ ready: true })
// Whoever asks first sleeps until he is answered, and the first question of a thread takes it a tenth of a second.
ask('getVersion', []).catch(() => {
  // Stopped already, or not well: whoever asks for something is told.
})
