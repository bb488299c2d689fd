import { type Draft, draftOn, takeOver } from '../simulated/state.ts'
import { contractAddress } from './addresses.ts'
import { type EvmPlace, type Execution, execute } from './contracts.ts'
import { bandwidthOf, type Decoded, decodeRaw, signerOf, type TronTransaction } from './decode_transaction.ts'
import {
  isSeen,
  keys,
  readAccount,
  readContract,
  readHead,
  readReference,
  type TronEntry,
  type TronState,
} from './entries.ts'
import type { Evm } from './evm.ts'
import { fees, usedBandwidth } from './fees.ts'
import { invalid, isCreating, Refused, transfer } from './transfers.ts'

export type TronResult = {
  readonly contractRet: string
  /** In sun, everything that it cost together. */
  readonly fee: bigint
  readonly netUsage: bigint
  readonly netFee: bigint
  readonly contract?: Execution & { readonly address: string; readonly energyFee: bigint }
}

const DAY_MS = 86_400_000n

/**
 * What a block makes of a transaction; throws Refused when none takes it. In the order of java-tron, whose words these are:
 * https://github.com/tronprotocol/java-tron, Manager.processTransaction
 */
export function runTransaction(
  tx: TronTransaction,
  draft: Draft<TronEntry>,
  place: EvmPlace,
  evm: Evm,
): TronResult {
  if (isSeen(draft, tx.id)) throw new Refused('DUP_TRANSACTION_ERROR', 'Dup transaction.')
  const decoded = decode(tx)
  checkSignature(tx, decoded)
  checkReference(decoded, draft)
  const entered = draftOn(draft)
  const charged = chargeBandwidth(tx, decoded, entered, place)
  const result = act(tx, decoded, charged, entered, place, evm)
  entered.set(keys.seen(tx.id), { height: place.height })
  takeOver(draft, entered.changes())
  return result
}

function decode({ rawHex }: TronTransaction): Decoded {
  try {
    return decodeRaw(rawHex)
  } catch (error) {
    throw new Refused('OTHER_ERROR', (error as Error).message)
  }
}

/** Every account has the permissions that it was born with: its own key, as owner (0) and as active (2). */
function checkSignature({ id, signatures }: TronTransaction, { action, permission }: Decoded): void {
  const refuse = (why: string) => new Refused('SIGERROR', `Validate signature error: ${why}`)
  if (permission !== 0n && permission !== 2n) throw refuse("permission isn't exit")
  const [signature, ...others] = signatures
  if (signature === undefined) throw refuse('miss sig or contract')
  if (others.length > 0) throw refuse('too many signatures')
  if (signature.length !== 130) throw refuse(`Signature size is ${signature.length / 2}`)
  const signer = signerOf(id, signature)
  if (signer !== action.owner_address)
    throw refuse(`${signature} is signed by ${signer ?? 'nobody'} but it is not contained of permission.`)
}

/** A transaction names a block of the chain that it is for, and how long it may wait. */
function checkReference({ raw }: Decoded, state: TronState): void {
  const known = readReference(state, raw.ref_block_bytes ?? '')
  if (known === undefined || known !== raw.ref_block_hash)
    throw new Refused('TAPOS_ERROR', `Tapos failed, different block hash, ${raw.ref_block_hash} , ${known}`)
  const headTimeMs = BigInt(readHead(state)?.timeMs ?? 0)
  const expiration = raw.expiration ?? 0n
  if (expiration <= headTimeMs || expiration > headTimeMs + DAY_MS)
    throw new Refused(
      'TRANSACTION_EXPIRATION_ERROR',
      `Transaction expiration, transaction expiration time is ${expiration}, but headBlockTime is ${headTimeMs}`,
    )
}

type Charged = { readonly netUsage: bigint; readonly netFee: bigint; readonly memoFee: bigint }

function chargeBandwidth(
  tx: TronTransaction,
  { raw, action }: Decoded,
  draft: Draft<TronEntry>,
  { timeMs }: EvmPlace,
): Charged {
  const owner = ownerOf(action.owner_address, draft)
  const memoFee = raw.data === undefined ? 0n : fees.getMemoFee
  const bytes = bandwidthOf(tx)
  const used = usedBandwidth(owner.bandwidth, timeMs)
  const isFree = !isCreating(action, draft) && used + bytes <= fees.getFreeNetLimit
  const netFee = isFree
    ? 0n
    : isCreating(action, draft)
      ? fees.getCreateAccountFee
      : bytes * fees.getTransactionFee
  const balance = owner.balance - netFee - memoFee
  if (balance < 0n) throw new Refused('BANDWITH_ERROR', 'Account resource insufficient error.')
  const bandwidth = isFree ? { used: used + bytes, atMs: timeMs } : owner.bandwidth
  draft.set(keys.account(owner.address), { ...owner, balance, bandwidth })
  return { netUsage: isFree ? bytes : 0n, netFee, memoFee }
}

function act(
  tx: TronTransaction,
  { raw, action }: Decoded,
  { memoFee, ...charged }: Charged,
  draft: Draft<TronEntry>,
  place: EvmPlace,
  evm: Evm,
): TronResult {
  const trial = draftOn(draft)
  if (action.type === 'TriggerSmartContract' || action.type === 'CreateSmartContract') {
    const energyMax = energyFor(action, raw.fee_limit ?? 0n, draft)
    const ran = runContract(tx, action, trial, energyMax, place, evm)
    if (ran.contractRet === 'SUCCESS') takeOver(draft, trial.changes())
    const energyFee = ran.energyUsed * fees.getEnergyFee
    const owner = ownerOf(action.owner_address, draft)
    draft.set(keys.account(owner.address), { ...owner, balance: owner.balance - energyFee })
    const fee = energyFee + charged.netFee + memoFee
    return { contractRet: ran.contractRet, fee, ...charged, contract: { ...ran, energyFee } }
  }
  const creationFee = transfer(action, trial, place.timeMs)
  const base = charged.netFee + memoFee
  if (tx.failWith !== undefined) return { contractRet: tx.failWith, fee: base, ...charged }
  takeOver(draft, trial.changes())
  return { contractRet: 'SUCCESS', fee: base + creationFee, ...charged }
}

type ContractAction = Extract<Decoded['action'], { type: 'TriggerSmartContract' | 'CreateSmartContract' }>

/** As much as the fee limit allows and the owner can pay. */
function energyFor(action: ContractAction, feeLimit: bigint, state: TronState): bigint {
  if (feeLimit < 0n || feeLimit > fees.getMaxFeeLimit)
    throw invalid(`feeLimit must be >= 0 and <= ${fees.getMaxFeeLimit}`)
  const value = sunOf(action)
  const rest = ownerOf(action.owner_address, state).balance - value
  if (value < 0n || rest < 0n) throw invalid('Validate InternalTransfer error, balance is not sufficient.')
  return (rest < feeLimit ? rest : feeLimit) / fees.getEnergyFee
}

function sunOf(action: ContractAction): bigint {
  const { call_value = 0n } = (action.type === 'CreateSmartContract' ? action.new_contract : action) ?? {}
  return call_value
}

function runContract(
  tx: TronTransaction,
  action: ContractAction,
  draft: Draft<TronEntry>,
  energyMax: bigint,
  place: EvmPlace,
  evm: Evm,
): Execution & { address: string } {
  const call = callOf(tx, action, draft)
  const execution = { ...execute(evm, draft, { ...call, energyMax }, place), address: call.to }
  if (tx.failWith !== undefined) return { ...execution, contractRet: tx.failWith, logs: [], internal: [] }
  if (action.type === 'CreateSmartContract') name(draft, call.to, action)
  return execution
}

function callOf(tx: TronTransaction, action: ContractAction, state: TronState) {
  const caller = action.owner_address ?? ''
  if (action.type === 'CreateSmartContract') {
    const code = action.new_contract?.bytecode ?? ''
    return { to: contractAddress(tx.id, caller), caller, value: sunOf(action), data: '', code }
  }
  const { contract_address: to = '', data = '' } = action
  if (action.call_token_value || action.token_id) throw invalid('TRC-10 tokens are not carried by calls here')
  if (readContract(state, to) === undefined) throw invalid('No contract or not a valid smart contract')
  return { to, caller, value: sunOf(action), data }
}

/** What the EVM does not know of a contract that it deployed. */
function name(
  draft: Draft<TronEntry>,
  address: string,
  { new_contract: made }: Extract<ContractAction, { type: 'CreateSmartContract' }>,
): void {
  const contract = readContract(draft, address)
  if (contract === undefined) return
  const { name: text = '', abi, bytecode = '' } = made ?? {}
  draft.set(keys.contract(address), { ...contract, name: text, abi: abi?.entrys ?? [], bytecode })
}

function ownerOf(address: string | undefined, state: TronState) {
  const owner = readAccount(state, address ?? '')
  if (owner === undefined) throw invalid(`account [${address}] does not exist`)
  return owner
}
