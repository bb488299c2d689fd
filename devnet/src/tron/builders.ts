import { keccak_256 } from '@noble/hashes/sha3.js'
import { draftOn } from '../simulated/state.ts'
import { hexOf } from './addresses.ts'
import { failureText, transactionJson } from './answers.ts'
import { referenceOf } from './blocks.ts'
import {
  type Answer,
  type Asked,
  addressIn,
  amountIn,
  CommandError,
  hexIn,
  messageHex,
  type Params,
  solidView,
  type TronNode,
} from './command.ts'
import { type Execution, execute } from './contracts.ts'
import { encodeRaw, transactionOf } from './decode_transaction.ts'
import { readContract } from './entries.ts'
import type { Action, Raw } from './messages.ts'
import type { TronBlock } from './rules.ts'
import { Refused, transfer } from './transfers.ts'

const EXPIRES_AFTER_MS = 60_000

/** What a node writes for who does not write transactions himself. Refers to a solid block, which no reorganisation undoes. */
export const builders = {
  createTransaction: (asked: Asked) =>
    buildTransfer(asked, {
      type: 'TransferContract',
      owner_address: addressIn(asked.params, 'owner_address'),
      to_address: addressIn(asked.params, 'to_address'),
      amount: amountIn(asked.params, 'amount'),
    }),
  transferAsset: (asked: Asked) =>
    buildTransfer(asked, {
      type: 'TransferAssetContract',
      asset_name: hexIn(asked.params, 'asset_name'),
      owner_address: addressIn(asked.params, 'owner_address'),
      to_address: addressIn(asked.params, 'to_address'),
      amount: amountIn(asked.params, 'amount'),
    }),
  createAccount: (asked: Asked) =>
    buildTransfer(asked, {
      type: 'AccountCreateContract',
      owner_address: addressIn(asked.params, 'owner_address'),
      account_address: addressIn(asked.params, 'account_address'),
    }),
  triggerSmartContract: (asked: Asked) =>
    onContract(asked, (action) => ({
      result: { result: true },
      transaction: build(asked.node, action, { fee_limit: amountIn(asked.params, 'fee_limit') }),
    })),
  triggerConstantContract: (asked: Asked) =>
    onContract(asked, (action) => {
      const execution = callConstantly(asked, action)
      const isFailed = execution.contractRet !== 'SUCCESS'
      const transaction = build(asked.node, action, {})
      return {
        result: {
          result: true,
          ...(isFailed && { message: messageHex(failureText(execution.contractRet)) }),
        },
        energy_used: Number(execution.energyUsed),
        constant_result: [execution.returned],
        ...(execution.logs.length > 0 && { logs: execution.logs }),
        transaction: { ret: [isFailed ? { ret: 'FAILED' } : {}], ...transaction },
      }
    }),
  estimateEnergy: (asked: Asked) =>
    onContract(asked, (action) => {
      const { contractRet, energyUsed } = callConstantly(asked, action)
      if (contractRet === 'SUCCESS') return { result: { result: true }, energy_required: Number(energyUsed) }
      return { result: { code: 'CONTRACT_EXE_ERROR', message: messageHex(failureText(contractRet)) } }
    }),
}

type Call = Extract<Action, { type: 'TriggerSmartContract' }>

function onContract(asked: Asked, answer: (action: Call) => Answer): Answer {
  const { params, view } = asked
  const action: Call = {
    type: 'TriggerSmartContract',
    owner_address: addressIn(params, 'owner_address'),
    contract_address: addressIn(params, 'contract_address'),
    call_value: amountIn(params, 'call_value'),
    data: dataOf(params),
  }
  if (readContract(view.state, action.contract_address ?? '') === undefined) {
    const message = 'Contract validate error : No contract or not a valid smart contract'
    return { result: { code: 'CONTRACT_VALIDATE_ERROR', message: messageHex(message) } }
  }
  return answer(action)
}

function dataOf(params: Params): string {
  const selector = String(params.function_selector ?? '')
  if (selector === '') return hexIn(params, 'data')
  return hexOf(keccak_256(Buffer.from(selector)).subarray(0, 4)) + hexIn(params, 'parameter')
}

const CONSTANT_ENERGY_MAX = 100_000_000n

function callConstantly({ node, view, isSolid }: Asked, action: Call): Execution {
  const isBehind = isSolid || view.head.height < node.chain.head.height
  const { height, timeMs } = view.head
  return execute(
    node.evm,
    draftOn(isBehind ? view.state : node.chain.open()),
    {
      to: action.contract_address ?? '',
      caller: action.owner_address ?? '',
      value: action.call_value ?? 0n,
      data: action.data ?? '',
      energyMax: CONSTANT_ENERGY_MAX,
    },
    { height, timeMs },
  )
}

/** Nothing is written for a transfer that would be refused now. */
function buildTransfer(asked: Asked, action: Parameters<typeof transfer>[0]): Answer {
  try {
    transfer(action, draftOn(asked.node.chain.open()), 0)
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    throw new CommandError('org.tron.core.exception.ContractValidateException', error.message)
  }
  return build(asked.node, action, {})
}

function build(node: TronNode, action: Action, more: Pick<Raw, 'fee_limit'>): Answer {
  const ends = { head: node.told().head, solid: solidView(node).head }
  return { visible: false, ...transactionJson(transactionOf(rawOf(ends, action, more), [])) }
}

export type Ends = { readonly head: TronBlock; readonly solid: TronBlock }

/** `extraMs` tells apart what would be the same bytes. */
export function rawOf(
  { head, solid }: Ends,
  action: Action,
  more: Pick<Raw, 'fee_limit'>,
  extraMs = 0n,
): string {
  const { bytes, hash } = referenceOf(solid.seal.hash)
  return encodeRaw(action, {
    ref_block_bytes: bytes,
    ref_block_hash: hash,
    expiration: BigInt(head.timeMs + EXPIRES_AFTER_MS),
    timestamp: BigInt(head.timeMs) + extraMs,
    ...more,
  })
}
