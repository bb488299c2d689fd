import type { Chain } from '../../chains/chain.ts'
import { findOwnAddresses } from '../../db/addresses.ts'
import { type Attempt, attemptsOf, storeAnswer, storeSignedBytes } from '../../db/attempts.ts'
import { type ClaimedOutflow, lockClaimed } from '../../db/claim_outflows.ts'
import { findOrder, findSeal } from '../../db/orders.ts'
import { setOutflowState } from '../../db/outflows.ts'
import { assert, unreachable } from '../../domain/assert.ts'
import { nativeAsset } from '../../domain/catalog/assets.ts'
import { chainFacts } from '../../domain/catalog/networks.ts'
import { sealedTermsOf } from '../../domain/orders/seal.ts'
import { type KeyPath, paysSomebody, type SignedTx } from '../../domain/payouts/intent.ts'
import type { Authority, Signed } from '../../signer/signer.ts'
import { apply } from '../apply.ts'
import type { SigningWorld } from '../world.ts'
import { endNeedlessFiller } from './fill_gap.ts'
import { endsWithTime, excludesByTime } from './over.ts'
import type { Progress } from './progress.ts'
import { raiseWhenSlow } from './raise.ts'
import { fillsGap } from './take_back.ts'
import { waitsItsTurn } from './turn.ts'
import { isLookOld } from './wait_for_source.ts'

const AFTER_SENDING_MS = 500
const AFTER_UNKNOWN_MS = 1_000
const AFTER_REFUSAL_MS = 5_000

/**
 * Signs an attempt, stores its bytes, and only then sends them, in this step unless the signer took its time. Whatever happens in
 * between, the next step finds the same attempt and sends the same bytes: that cannot pay twice. `forgotten`: attempts that the
 * network was just found not to have.
 */
export async function sendAttempt(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  attempt: Attempt,
  forgotten: readonly Attempt[] = [],
): Promise<Progress> {
  let { tx, intent } = attempt
  if (tx === null) {
    const askedWallMs = world.clock.wallMs()
    const signed = await world.signer.sign(attempt.intent, await authorityFor(world, outflow))
    if (!signed.ok) {
      const { code: refusal, message: why } = signed.rejection
      const message = `the signer refuses (${refusal}): ${why}`
      return { kind: 'trouble', message, inMs: AFTER_REFUSAL_MS, refusal }
    }
    const stored = await storeBytes(world, outflow, attempt.attempt, signed.value)
    if (stored === 'lost') return { kind: 'done' }
    if (stored === 'excludes nothing') return excludesNothing(outflow, attempt)
    const { intent: before, ...bytes } = signed.value
    tx = bytes
    intent = before ?? intent
    // The next step finds the bytes, and looks at the deposit before it sends them, and whether the chain was stopped.
    if (isLookOld(world, askedWallMs)) return { kind: 'again', inMs: 0 }
  }
  return broadcast(world, chain, outflow, { ...attempt, intent, tx }, forgotten)
}

/**
 * Signs nothing: what the signer has signed already, and was never heard of here, is written down, so that an outflow that has to
 * wait can be given up. Asked for once more, the signer answers the same bytes.
 */
export async function writeDownSigned(
  world: SigningWorld,
  outflow: ClaimedOutflow,
  { attempt, intent, tx }: Attempt,
): Promise<void> {
  if (tx !== null || (await world.signer.lastSigned(outflow.payoutId)) < attempt) return
  const signed = await world.signer.sign(intent, await authorityFor(world, outflow))
  if (signed.ok) await storeBytes(world, outflow, attempt, signed.value)
}

/** `lost`: somebody else has it. A filler that was signed before in another way is stored only where it still fills its gap. */
async function storeBytes(
  world: SigningWorld,
  outflow: ClaimedOutflow,
  attempt: number,
  signed: Signed,
): Promise<'stored' | 'lost' | 'excludes nothing'> {
  return world.db.transaction(async (sql) => {
    if ((await lockClaimed(sql, outflow)) === null) return 'lost'
    if (signed.intent !== undefined && !(await fillsGap(sql, outflow, signed.intent)))
      return 'excludes nothing'
    await storeSignedBytes(sql, outflow.payoutId, attempt, signed)
    await setOutflowState(sql, outflow.payoutId, ['planned'], 'signed')
    return 'stored'
  })
}

function excludesNothing({ payoutId }: ClaimedOutflow, { attempt }: Attempt): Progress {
  const message = `the signer has signed attempt ${attempt} of ${payoutId} before, which does not exclude what that stands in for now`
  return { kind: 'trouble', message, inMs: AFTER_REFUSAL_MS, refusal: 'conflict' }
}

type SentAttempt = Attempt & { readonly tx: SignedTx }

async function broadcast(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  sent: SentAttempt,
  forgotten: readonly Attempt[],
): Promise<Progress> {
  const { attempt, tx } = sent
  const answer = await chain.broadcast(tx)
  switch (answer) {
    case 'accepted':
      await noteAccepted(world, outflow, attempt, tx)
      world.log.info({ payout: outflow.payoutId, attempt, tx: tx.txHash }, 'an outflow was sent')
      return { kind: 'again', inMs: AFTER_SENDING_MS, atHeight: 'next' }
    case 'unknown':
      // Maybe sent. Only the same bytes are ever sent again, and sending them twice pays once.
      await noteMissing(world, outflow, [sent, ...forgotten], 'unknown')
      return unlessBeforeItsTurn(world, chain, outflow, await noteUnknown(world, chain, outflow))
    case 'refused': {
      const progress = await noteRefused(world, chain, outflow, sent, forgotten)
      return unlessBeforeItsTurn(world, chain, outflow, progress)
    }
    default:
      return unreachable(answer)
  }
}

/**
 * A ledger that has not had the sequence before (XRP: `terPRE_SEQ`), or has too many of the account in its queue, says nothing of what waits
 * behind that. Elsewhere it does: an EVM node takes what is to wait, and refuses what is wrong.
 */
async function unlessBeforeItsTurn(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  progress: Progress,
): Promise<Progress> {
  if (progress.kind !== 'trouble' || !endsWithTime(chain)) return progress
  if (!(await waitsItsTurn(world, chain, outflow))) return progress
  return { kind: 'again', inMs: progress.inMs, atHeight: 'next' }
}

async function noteUnknown(world: SigningWorld, chain: Chain, outflow: ClaimedOutflow): Promise<Progress> {
  const message = 'the network did not say whether it has the payout'
  const trouble = { kind: 'trouble', message, inMs: AFTER_UNKNOWN_MS } as const
  // A node may say so for ever and never that it is too late (java-tron, of what it has seen before): there the chain says that it is over.
  const isRefusedAtLast = endsWithTime(chain) && !excludesByTime(chain)
  return isRefusedAtLast ? trouble : tryHigherFee(world, chain, outflow, trouble)
}

async function noteRefused(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  sent: SentAttempt,
  forgotten: readonly Attempt[],
): Promise<Progress> {
  await noteMissing(world, outflow, [sent, ...forgotten], 'refused')
  if (outflow.kind === 'filler' && (await endNeedlessFiller(world, chain, outflow))) return { kind: 'done' }
  const message = `the network refuses ${sent.tx.txHash}`
  return tryHigherFee(world, chain, outflow, { kind: 'trouble', message, inMs: AFTER_REFUSAL_MS })
}

/** What the network forgot, and does not say that it takes again, counts no longer as taken: it is given up after a while. */
export async function noteMissing(
  world: SigningWorld,
  { payoutId }: ClaimedOutflow,
  missing: readonly Attempt[],
  answer: 'refused' | 'unknown',
): Promise<void> {
  const nowMs = world.clock.nowMs()
  for (const attempt of new Set(missing.map((one) => one.attempt))) {
    await storeAnswer(world.db, payoutId, attempt, answer, nowMs)
  }
}

/**
 * Gives what is in trouble a higher fee if it is slow. Nobody has any of it, so that its deposit is looked at before that is signed. While
 * higher fees are tried, the time until it is given up goes on.
 */
async function tryHigherFee(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  trouble: Progress & { readonly kind: 'trouble' },
): Promise<Progress> {
  const raised = await raiseWhenSlow(world, chain, outflow, await attemptsOf(world.db, outflow.payoutId))
  if (raised === null) return trouble
  return raised.kind === 'again' ? { ...trouble, inMs: 0 } : raised
}

/** The network has it. */
export async function noteAccepted(
  world: SigningWorld,
  outflow: ClaimedOutflow,
  attempt: number,
  tx: SignedTx,
): Promise<void> {
  const nowMs = world.clock.nowMs()
  if (!paysSomebody(outflow)) {
    await storeAnswer(world.db, outflow.payoutId, attempt, 'accepted', nowMs)
    await setOutflowState(world.db, outflow.payoutId, ['planned', 'signed'], 'broadcast')
    return
  }
  const applied = await apply(
    world,
    outflow.orderId,
    `${outflow.payoutId}:broadcast:${attempt}`,
    { kind: 'PayoutBroadcast', payoutId: outflow.payoutId, txHash: tx.txHash },
    async (sql) => {
      await storeAnswer(sql, outflow.payoutId, attempt, 'accepted', nowMs)
      await setOutflowState(sql, outflow.payoutId, ['planned', 'signed'], 'broadcast')
    },
  )
  // The fact was told before (a broadcast that was lost again): the answer still has to be noted.
  if (applied.kind === 'duplicate') await storeAnswer(world.db, outflow.payoutId, attempt, 'accepted', nowMs)
}

async function authorityFor(world: SigningWorld, outflow: ClaimedOutflow): Promise<Authority> {
  if (!paysSomebody(outflow)) {
    // From us to us: the signer goes by its own keys, whatever is sealed here.
    const { id: native } = nativeAsset(outflow.chain)
    const terms = {
      orderId: outflow.orderId,
      payoutAsset: native,
      destination: outflow.address,
      destinationTag: outflow.tag,
      depositAsset: native,
      refundAddress: null,
    }
    const payeeKey = await payeeKeyOf(world, outflow)
    return { kind: outflow.kind, ...terms, payeeKey, seal: world.seal(terms, 'own') }
  }
  const order = await findOrder(world.db, outflow.orderId)
  assert(order !== null, 'a payout belongs to an order')
  const seal = await findSeal(world.db, outflow.orderId)
  return { kind: outflow.kind, ...sealedTermsOf(order), payeeKey: null, seal }
}

/**
 * Gas for a sweep goes to a deposit address, the coins of a stuck outflow to a change address: which one, so that the
 * signer can tell that it is ours.
 */
async function payeeKeyOf(world: SigningWorld, outflow: ClaimedOutflow): Promise<KeyPath | null> {
  const isTakeBack = outflow.fills !== null
  const isGas = outflow.kind === 'sweep' && outflow.from === undefined
  if (!isTakeBack && !isGas) return null
  const own = await findOwnAddresses(world.db, chainFacts[outflow.chain].family, [outflow.address])
  const key = own.get(outflow.address)?.key
  return key?.purpose === (isTakeBack ? 'change' : 'deposit') ? key : null
}
