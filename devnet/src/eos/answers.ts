import { PrivateKey, Serializer, Transaction } from '@wharfkit/antelope'
import type { Included } from '../simulated/chain.ts'
import type { State } from '../simulated/state.ts'
import { paramsOf } from './abis.ts'
import { type Eos, PRODUCER, slotTimeMs } from './blocks.ts'
import { SYSTEM_ACCOUNT } from './contracts.ts'
import { type EosTransaction, sha256 } from './decode_transaction.ts'
import { type EosEntry, readAccount } from './entries.ts'
import { type EosBlock, GENESIS_PRIVATE_KEY } from './rules.ts'
import { type ActionTrace, referencePrefix } from './run_transaction.ts'

/** What a transaction costs here; a real node measures it. */
const CPU_USAGE_US = 200

/** Without a zone, as nodeos writes it; it means UTC. */
export function timeText(timeMs: number): string {
  return new Date(slotTimeMs(timeMs)).toISOString().slice(0, -1)
}

/** https://docs.antelope.io/docs/latest/api-reference: `get_block_info`, and what `get_block` says of a block itself. */
export function headerJson(block: EosBlock): object {
  const { hash, transactionMroot, actionMroot } = block.seal
  return {
    timestamp: timeText(block.timeMs),
    producer: PRODUCER,
    confirmed: 0,
    previous: block.parentHash,
    transaction_mroot: transactionMroot,
    action_mroot: actionMroot,
    schedule_version: 0,
    producer_signature: String(PrivateKey.from(GENESIS_PRIVATE_KEY).signDigest(hash)),
    id: hash,
    block_num: block.height,
    ref_block_prefix: referencePrefix(hash),
  }
}

/** As it stands in `get_block`: a transaction that was executed later than it was sent is only named. */
export function receiptJson({ tx, result }: Included<Eos>): object {
  const usage = { cpu_usage_us: CPU_USAGE_US, net_usage_words: netWords(tx) }
  const isNamed = tx.notBeforeMs !== undefined || result.status === 'hard_fail'
  if (isNamed) return { status: result.status, cpu_usage_us: 0, net_usage_words: 0, trx: tx.id }
  const transaction = Serializer.decode({ data: tx.packed, type: Transaction })
  return {
    status: result.status,
    ...usage,
    trx: {
      id: tx.id,
      signatures: tx.signatures,
      compression: 'none',
      packed_context_free_data: tx.packedContextFreeData,
      context_free_data: [],
      packed_trx: tx.packed,
      transaction: Serializer.objectify(transaction),
    },
  }
}

type Place = { readonly height: number; readonly timeMs: number; readonly hash?: string }

/** As `send_transaction` answers. */
export function transactionTraceJson(
  tx: EosTransaction,
  traces: readonly ActionTrace[],
  status: string | null,
  place: Place,
): object {
  const net_usage_words = netWords(tx)
  const at = { block_num: place.height, block_time: timeText(place.timeMs), producer_block_id: null }
  return {
    id: tx.id,
    ...at,
    receipt: status === null ? null : { status, cpu_usage_us: CPU_USAGE_US, net_usage_words },
    elapsed: CPU_USAGE_US,
    net_usage: net_usage_words * 8,
    scheduled: false,
    action_traces: traces.map((trace, index) => ({
      action_ordinal: index + 1,
      receipt: { receiver: trace.receiver, global_sequence: trace.globalSequence },
      receiver: trace.receiver,
      act: {
        account: trace.account,
        name: trace.name,
        authorization: trace.authorization,
        data: trace.data,
        hex_data: trace.data,
      },
      context_free: false,
      elapsed: CPU_USAGE_US,
      console: '',
      trx_id: tx.id,
      ...at,
      except: null,
      error_code: null,
      return_value_hex_data: '',
    })),
    account_ram_delta: null,
  }
}

/** As it stands in `trace_api/get_block`: https://github.com/AntelopeIO/leap, plugins/trace_api_plugin */
export function tracedJson({ tx, result }: Included<Eos>, block: EosBlock, state: State<EosEntry>): object {
  const { expirationMs, refBlockNum, refBlockPrefix, delaySeconds } = tx
  return {
    id: tx.id,
    block_num: block.height,
    block_time: timeText(block.timeMs),
    producer_block_id: block.seal.hash,
    actions: result.traces.map((trace) => actionJson(trace, state)),
    status: result.status,
    cpu_usage_us: result.status === 'executed' ? CPU_USAGE_US : 0,
    net_usage_words: netWords(tx),
    signatures: tx.signatures,
    transaction_header: {
      expiration: new Date(expirationMs).toISOString().slice(0, 19),
      ref_block_num: refBlockNum,
      ref_block_prefix: refBlockPrefix,
      max_net_usage_words: 0,
      max_cpu_usage_ms: 0,
      delay_sec: delaySeconds,
    },
  }
}

function actionJson(trace: ActionTrace, state: State<EosEntry>): object {
  const params = paramsOf(readAccount(state, trace.account)?.contract, trace.name, trace.data)
  return {
    global_sequence: trace.globalSequence,
    receiver: trace.receiver,
    account: trace.account,
    action: trace.name,
    authorization: trace.authorization.map(({ actor, permission }) => ({ account: actor, permission })),
    data: trace.data,
    return_value: '',
    ...(params && { params }),
  }
}

/** The transaction that a node itself puts first in every block: it is in the trace, and in no list of transactions. */
export function onblockJson(block: EosBlock, parent: EosBlock): object {
  return {
    id: sha256(`${block.parentHash}${block.seal.hash}`),
    block_num: block.height,
    block_time: timeText(block.timeMs),
    producer_block_id: block.seal.hash,
    actions: [
      {
        global_sequence: parent.seal.nextOnblockSequence,
        receiver: SYSTEM_ACCOUNT,
        account: SYSTEM_ACCOUNT,
        action: 'onblock',
        authorization: [{ account: SYSTEM_ACCOUNT, permission: 'active' }],
        data: block.parentHash,
        return_value: '',
      },
    ],
    status: 'executed',
    cpu_usage_us: CPU_USAGE_US,
    net_usage_words: 0,
    signatures: [],
    transaction_header: {
      expiration: timeText(block.timeMs).slice(0, 19),
      ref_block_num: 0,
      ref_block_prefix: 0,
      max_net_usage_words: 0,
      max_cpu_usage_ms: 0,
      delay_sec: 0,
    },
  }
}

function netWords({ packed, signatures }: EosTransaction): number {
  return Math.ceil((packed.length / 2 + signatures.length * 65) / 8)
}
