import { describe, expect, test } from 'vitest'
import { assert } from '../assert.ts'
import { type AssetId, assetOf, nativeAsset } from '../catalog/assets.ts'
import { amountOf, showAmount } from '../money/amount.ts'
import { convertBack } from '../money/rate.ts'
import type { RateType } from '../quotes/quote.ts'
import { decide } from './decide.ts'
import {
  type Deposit,
  emergencyReasons,
  nothingFailed,
  type Order,
  orphaned,
  receivedSoFar,
} from './order.ts'
import { checkBooks } from './testing/books.ts'
import {
  confirm,
  expire,
  fail,
  goOn,
  IN_TIME_MS,
  keyOf,
  LATE_MS,
  mine,
  pay,
  price,
  refund,
  type Scene,
  say,
  scenes,
  see,
  seen,
  send,
  setScene,
  stall,
  unmine,
  vanish,
  writeDown,
} from './testing/scenes.ts'
import {
  allButDust,
  costOn,
  debitOf,
  dustLeft,
  EXPIRES_MS,
  exactly,
  liveOutflow,
  marketOf,
  priceNow,
  refundNow,
  type Setting,
  startStory,
  tell,
} from './testing/story.ts'

/**
 * What: the amounts, reasons and roles behind the grid's states, where money could slip through.
 * How: scenes set by facts; the books are compared with the chains at the end of each.
 */

function orderOf(scene: Scene): Order {
  checkBooks(scene.story)
  return scene.story.order
}

function depositOf(scene: Scene, name: string): Deposit {
  const deposit = orderOf(scene).deposits.find(({ key }) => key === keyOf(name))
  assert(deposit !== undefined, `${name} is known`)
  return deposit
}

function reasonsOf(scene: Scene) {
  const { state } = orderOf(scene)
  return state.status === 'EMERGENCY' ? state.reasons : state.status
}

function settled(scene: Scene) {
  const { state } = orderOf(scene)
  assert('settlement' in state && state.settlement !== null, 'it is settled')
  return state.settlement
}

const mineUnits = (name: string, units: bigint) => {
  return (scene: Scene): Scene => {
    const amount = amountOf(scene.story.order.terms.from, units)
    return say((story) => seen(story, name, { amount, atMs: scene.nowMs }))(scene)
  }
}
const mineElsewhere = (name: string, units: bigint) => {
  return (scene: Scene): Scene => {
    const amount = amountOf(scene.story.order.terms.from, units)
    const block = { height: 101, hash: '0xelsewhere' }
    return say((story) => ({ ...seen(story, name, { amount, atMs: scene.nowMs }), block }))(scene)
  }
}
const goOnWithPrice = (changeBps: bigint) =>
  say((story) => ({ kind: 'ExchangePriced', quote: priceNow(story, changeBps) }))
const goAhead = say((story) => ({ kind: 'ActionChosen', action: 'continue', quote: priceNow(story) }))

const unclaimed = (scene: Scene) => debitOf(scene.story, 'ETH:ETH', 'unclaimed')

const ASKED = exactly('ETH:ETH', '0.5').units

describe('why an order is an emergency', () => {
  test('the reasons are those of its deposits and of what went wrong', () => {
    expect(reasonsOf(scenes.emergencyUnder)).toEqual(['UNDERPAID'])
    expect(reasonsOf(scenes.emergencyOver)).toEqual(['OVERPAID'])
    expect(reasonsOf(scenes.emergencyLate)).toEqual(['LATE_DEPOSIT'])
    expect(reasonsOf(scenes.emergencySlipped)).toEqual(['RATE_SLIPPAGE'])
    expect(reasonsOf(scenes.emergencyFailed)).toEqual(['DESTINATION_PROBLEM'])
    expect(reasonsOf(goOn(scenes.due, stall))).toEqual(['NETWORK_PROBLEM'])
    expect(reasonsOf(setScene({}, expire, mine('d1', 50n), confirm('d1')))).toEqual([
      'UNDERPAID',
      'LATE_DEPOSIT',
    ])
  })

  test('there are no other reasons than these', () => {
    const stalled = goOn(scenes.due, stall)
    const reached = [...Object.values(scenes), stalled].flatMap((scene) => {
      const { state } = scene.story.order
      return state.status === 'EMERGENCY' ? state.reasons : []
    })
    expect([...new Set(reached)].toSorted()).toEqual([...emergencyReasons].toSorted())
  })

  test('the moment of the first one stays, whatever is chosen, sent or goes wrong after it', () => {
    const later = (scene: Scene): Scene => ({ ...scene, nowMs: scene.nowMs + 60_000 })
    expect(orderOf(scenes.due).firstEmergencyAtMs).toBeNull()
    const emergency = goOn(scenes.due, later, stall)
    expect(orderOf(emergency).firstEmergencyAtMs).toBe(emergency.nowMs)
    const afterIt = [
      goOn(emergency, later, mineUnits('d9', 1n)),
      goOn(emergency, later, goAhead),
      goOn(emergency, later, goAhead, later, stall),
      goOn(emergency, later, unmine('d1'), later, mine('d1', 100n), confirm('d1'), stall),
    ]
    for (const scene of afterIt) expect(orderOf(scene).firstEmergencyAtMs).toBe(emergency.nowMs)
    const setBack = goOn({ ...emergency, nowMs: emergency.nowMs - 60_000 }, goAhead, later, later, stall)
    expect(orderOf(setBack).firstEmergencyAtMs, 'and by whatever clock').toBe(emergency.nowMs)
    const half = goOn(scenes.emergencyUnder, later, mine('d9', 50n), confirm('d9'), stall)
    const { firstEmergencyAtMs } = orderOf(scenes.emergencyUnder)
    expect([reasonsOf(half), orderOf(half).firstEmergencyAtMs]).toEqual([
      ['NETWORK_PROBLEM'],
      firstEmergencyAtMs,
    ])
  })

  test('a failed payout does not make a late deposit one in time, which would bring the locked rate back', () => {
    const failed = goOn(scenes.emergencyLate, goAhead, writeDown, send, fail)
    expect(reasonsOf(failed)).toEqual(['LATE_DEPOSIT', 'DESTINATION_PROBLEM'])
  })

  test('a late top-up is a reason when it is confirmed, not before', () => {
    const topped = goOn({ ...scenes.emergencyUnder, nowMs: LATE_MS }, mine('d2', 50n))
    expect(reasonsOf(topped)).toEqual(['UNDERPAID'])
    expect(reasonsOf(goOn(topped, confirm('d2')))).toEqual(['LATE_DEPOSIT'])
  })

  test('a top-up that completes the order waits for another that is on its way', () => {
    const completed = goOn(scenes.emergencyTopUp, mine('d3', 10n), confirm('d2'))
    expect(reasonsOf(completed)).toEqual(['UNDERPAID'])
    expect(reasonsOf(goOn(completed, confirm('d3')))).toEqual(['OVERPAID'])
    expect(reasonsOf(goOn(completed, unmine('d3'), vanish('d3')))).toBe('EXCHANGE')
  })

  test('a reason that further deposits do not cure is given once', () => {
    const more = [mine('d2', 10n), confirm('d2')]
    expect(reasonsOf(goOn(scenes.emergencyOver, ...more))).toEqual(['OVERPAID'])
    expect(reasonsOf(goOn(scenes.emergencyLate, ...more))).toEqual(['OVERPAID', 'LATE_DEPOSIT'])
  })

  test('a top-up adds to the reasons that deposits do not cure', () => {
    const more = goOn(scenes.emergencyFailed, mine('d2', 10n), confirm('d2'))
    expect(reasonsOf(more)).toEqual(['OVERPAID', 'DESTINATION_PROBLEM'])
  })
})

describe('what counts', () => {
  test('what vanished and comes back while the exchange is due is not part of it', () => {
    const scene = setScene(
      {},
      see('d2', 100n),
      vanish('d2'),
      mine('d1', 100n),
      confirm('d1'),
      mine('d2', 100n),
    )
    expect(depositOf(scene, 'd2').role).toBe('extra')
  })

  test('dust that is on its way when the order is paid out stays dust', () => {
    const scene = setScene({}, mineUnits('d2', 1n), mine('d1', 100n), confirm('d1'), price)
    expect(depositOf(scene, 'd2').role).toBe('dust')
  })

  test('a deposit was seen when it was first seen, also once it is mined', () => {
    const seenFirst = setScene({}, see('d1', 100n))
    const minedLater = goOn({ ...seenFirst, nowMs: LATE_MS }, mine('d1', 100n))
    expect(depositOf(seenFirst, 'd1').seenAtMs).toBe(IN_TIME_MS)
    expect(depositOf(minedLater, 'd1').seenAtMs).toBe(IN_TIME_MS)
  })

  test('what lies in a mempool holds up nobody who has paid, and is no part of what is exchanged', () => {
    const paid = setScene({}, mine('d1', 100n), see('d2', 100n), confirm('d1'))
    expect(reasonsOf(paid)).toBe('EXCHANGE')
    expect(depositOf(paid, 'd2').role).toBe('extra')
    expect(reasonsOf(goOn(paid, mine('d2', 100n), confirm('d2')))).toBe('EXCHANGE')
    expect(settled(goOn(paid, mine('d2', 100n), confirm('d2'), price)).received.units).toBe(
      depositOf(paid, 'd1').amount.units,
    )
  })

  test('who was told that the payment was seen is not told that there was none, whatever else comes late', () => {
    const longAfterMs = EXPIRES_MS + 24 * 3_600_000
    const mined = (rateType: RateType) =>
      goOn({ ...setScene({ rateType }, see('d1', 100n)), nowMs: longAfterMs }, mine('d1', 100n))
    expect(depositOf(mined('fixed'), 'd1').isLate).toBe(true)
    expect(reasonsOf(goOn(mined('fixed'), mine('d2', 100n)))).toBe('PENDING')
    // A float order has no rate that somebody could wait for.
    expect(depositOf(mined('float'), 'd1').isLate).toBe(false)
    expect(reasonsOf(goOn(mined('float'), confirm('d1')))).toBe('EXCHANGE')
  })

  test('what is in a block already is waited for', () => {
    const twice = setScene({}, mine('d1', 100n), mine('d2', 100n), confirm('d1'))
    expect(reasonsOf(twice)).toBe('PENDING')
    expect(reasonsOf(goOn(twice, confirm('d2')))).toEqual(['OVERPAID'])
    expect(reasonsOf(goOn(twice, unmine('d2'), vanish('d2')))).toBe('EXCHANGE')
  })

  test('nor does it keep an emergency that further deposits have cured, or a late one from its choice', () => {
    const topped = goOn(scenes.emergencyTopUp, see('d3', 10n), confirm('d2'))
    expect(reasonsOf(topped)).toBe('EXCHANGE')
    const late = { ...setScene({}, expire), nowMs: LATE_MS }
    const credited = goOn(late, mine('d1', 100n), see('d2', 100n), confirm('d1'))
    expect(reasonsOf(credited)).toEqual(['LATE_DEPOSIT'])
  })

  test.each([
    ['fixed', ['LATE_DEPOSIT']],
    ['float', 'EXCHANGE'],
  ] as const)(
    'too little of %s waits for the rest in a mempool until an hour after expiry',
    (rateType, end) => {
      const half = setScene({ rateType }, mine('d1', 50n), see('d2', 50n), confirm('d1'))
      const expired = (lateMs: number) => {
        const nowMs = EXPIRES_MS + 3_600_000 + lateMs
        return { nowMs, ...tell(half.story, { kind: 'OrderExpired', atMs: nowMs }, nowMs) }
      }
      expect(expired(-1).decision.kind).toBe('ignored')
      expect(reasonsOf(expired(0))).toEqual(['UNDERPAID'])
      expect(reasonsOf(goOn(expired(0), vanish('d2')))).toEqual(['UNDERPAID'])
      const whole = goOn(expired(0), mine('d2', 50n))
      expect(reasonsOf(whole)).toEqual(['UNDERPAID'])
      expect(reasonsOf(goOn(whole, confirm('d2')))).toEqual(end)
    },
  )

  test('the rest has to be in a block by the end of that hour, and what is in one is waited for', () => {
    const nowMs = EXPIRES_MS + 3_600_000
    const half = { ...setScene({}, mine('d1', 50n), see('d2', 50n)), nowMs }
    const isOver: typeof expire = (scene) =>
      say(() => ({ kind: 'OrderExpired', atMs: nowMs }))({ ...scene, nowMs })
    expect(reasonsOf(goOn(half, confirm('d1')))).toBe('PENDING')
    expect(reasonsOf(goOn(half, confirm('d1'), isOver))).toEqual(['UNDERPAID'])
    const mined = goOn(half, mine('d2', 50n), confirm('d1'))
    expect(reasonsOf(mined)).toBe('PENDING')
    expect(decide(mined.story.order, { kind: 'OrderExpired', atMs: nowMs }, nowMs).kind).toBe('ignored')
    expect(reasonsOf(goOn(mined, unmine('d2')))).toEqual(['UNDERPAID'])
  })

  test('a block that takes the rest, and the next that brings it, ask nobody', () => {
    const half = setScene({ rateType: 'float' }, mine('d1', 50n), mine('d2', 50n), confirm('d1'))
    const late = goOn({ ...half, nowMs: EXPIRES_MS + 3_600_000 }, unmine('d2'))
    expect(reasonsOf(late)).toBe('PENDING')
    expect(reasonsOf(goOn(late, mine('d2', 50n), confirm('d2')))).toBe('EXCHANGE')
  })

  test('nor do they begin an exchange without the rest, whose customer is asked when it is deep again', () => {
    const twice = setScene({}, mine('d1', 100n), mine('d2', 100n), confirm('d1'), unmine('d2'))
    expect(reasonsOf(twice)).toBe('PENDING')
    expect(reasonsOf(goOn(twice, mine('d2', 100n), confirm('d2')))).toEqual(['OVERPAID'])
    const nowMs = EXPIRES_MS + 3_600_000
    const stays = tell(twice.story, { kind: 'OrderExpired', atMs: nowMs }, nowMs)
    expect(reasonsOf({ ...stays, nowMs })).toBe('EXCHANGE')
    const topped = goOn(scenes.emergencyTopUp, mine('d3', 10n), confirm('d2'), unmine('d3'))
    expect(reasonsOf(topped)).toEqual(['UNDERPAID'])
    expect(reasonsOf(goOn(topped, mine('d3', 10n), confirm('d3')))).toEqual(['OVERPAID'])
    expect(reasonsOf(goOn(topped, vanish('d3')))).toBe('EXCHANGE')
  })

  test('nor does who was asked before and paid the rest choose when the exchange begins: an hour after expiry it does', () => {
    const both = goOn(scenes.emergencyUnder, mine('d3', 50n), mine('d4', 50n), confirm('d3'))
    const topped = goOn(both, unmine('d4'))
    expect(reasonsOf(topped)).toEqual(['UNDERPAID'])
    const tellAt = ({ story }: Scene, lateMs: number) => {
      const nowMs = EXPIRES_MS + 3_600_000 + lateMs
      return { nowMs, ...tell(story, { kind: 'OrderExpired', atMs: nowMs }, nowMs) }
    }
    expect(tellAt(topped, -1).decision.kind).toBe('ignored')
    expect(tellAt(both, 0).decision.kind, 'what is in a block is waited for').toBe('ignored')
    const begun = tellAt(topped, 0)
    expect(reasonsOf(begun)).toBe('EXCHANGE')
    expect(depositOf(begun, 'd4').role).toBe('extra')
    expect(settled(goOn(begun, price)).paid).toEqual(topped.story.order.terms.promises)
    const stillUnder = goOn(scenes.emergencyUnder, see('d3', 50n))
    expect(tellAt(stillUnder, 0).decision.kind, 'nobody has paid what was asked').toBe('ignored')
    expect(tellAt(goOn(scenes.emergencyFailed, see('d3', 50n)), 0).decision.kind).toBe('ignored')
  })

  test('what comes after expiry keeps too little waiting no longer, from a mempool', () => {
    const half = { ...setScene({}, mine('d1', 50n)), nowMs: LATE_MS }
    expect(reasonsOf(goOn(half, see('d2', 50n), confirm('d1')))).toEqual(['UNDERPAID'])
    expect(reasonsOf(goOn(half, mine('d2', 50n), confirm('d1')))).toBe('PENDING')
  })

  test('an order that was told of its payment waits for it, and does not expire because it is mined late', () => {
    const waited = { ...setScene({ rateType: 'fixed' }, see('d1', 100n)), nowMs: EXPIRES_MS + 3_600_000 }
    const mined = goOn(waited, mine('d1', 100n))
    expect(reasonsOf(mined)).toBe('PENDING')
    expect(reasonsOf(goOn(mined, confirm('d1')))).toEqual(['LATE_DEPOSIT'])
  })

  test.each([
    ['while its customer is asked', []],
    ['while it is exchanged', [goAhead]],
    ['while it is refunded', [refund]],
    ['when its payout has failed since', [goAhead, writeDown, send]],
  ] as const)('nor does it when that block leaves the chain %s', (_, chosen) => {
    const waited = { ...setScene({ rateType: 'fixed' }, see('d1', 100n)), nowMs: EXPIRES_MS + 3_600_000 }
    const lost = goOn(waited, mine('d1', 100n), confirm('d1'), ...chosen, unmine('d1'))
    const left = chosen.length > 1 ? goOn(lost, fail) : lost
    expect(reasonsOf(left)).toBe('PENDING')
    expect(reasonsOf(goOn(left, mine('d1', 100n), confirm('d1')))).toEqual(['LATE_DEPOSIT'])
    expect(reasonsOf(goOn(left, vanish('d1'), expire))).toBe('EXPIRED')
  })

  test.each([
    ['fixed', 0, ['LATE_DEPOSIT']],
    ['fixed', -1, 'EXCHANGE'],
    ['float', 0, 'EXCHANGE'],
  ] as const)(
    'seen in time, of %s, and in a block an hour and %i ms after expiry',
    (rateType, lateMs, end) => {
      const nowMs = EXPIRES_MS + 3_600_000 + lateMs
      const waited = { ...setScene({ rateType }, see('d1', 100n)), nowMs }
      expect(reasonsOf(goOn(waited, mine('d1', 100n), confirm('d1')))).toEqual(end)
      const gone = { ...setScene({ rateType }, see('d1', 100n), vanish('d1'), expire), nowMs }
      expect(reasonsOf(goOn(gone, mine('d1', 100n), confirm('d1')))).toEqual(end)
    },
  )

  test('a deposit is late from the very moment of expiry on', () => {
    const { story } = setScene({})
    const lateBy = (ms: number) => {
      const atMs = EXPIRES_MS + ms
      const told = tell(story, seen(story, 'd1', { atMs }), atMs)
      return told.story.order.deposits[0]?.isLate
    }
    expect(lateBy(-1)).toBe(false)
    expect(lateBy(0)).toBe(true)
    expect(lateBy(1)).toBe(true)
  })

  test('an order that was ended does not go on at the locked rate because a block carries an earlier time', () => {
    const ended = setScene({}, expire)
    const backdated = say((story) => seen(story, 'd1', { atMs: EXPIRES_MS - 1 }))
    expect(reasonsOf(goOn(ended, backdated, confirm('d1')))).toEqual(['LATE_DEPOSIT'])
  })

  test('what comes late does not end an order whose chain was not looked at: a block read next may hold what came in time', () => {
    const again = goOn({ ...setScene({}), nowMs: LATE_MS }, see('d2', 100n))
    expect([reasonsOf(again), depositOf(again, 'd2').isLate]).toEqual(['NEW', true])
    const minedAtMs = EXPIRES_MS - 1
    const found = goOn(
      again,
      say((story) => seen(story, 'd1', { atMs: minedAtMs })),
    )
    expect([reasonsOf(found), depositOf(found, 'd1').isLate]).toEqual(['PENDING', false])
    expect(reasonsOf(goOn(found, confirm('d1')))).toBe('EXCHANGE')
    expect(reasonsOf(goOn(again, expire)), 'the whole look ends it').toBe('EXPIRED')
    expect(reasonsOf(goOn(again, expire, mine('d2', 100n), confirm('d2')))).toEqual(['LATE_DEPOSIT'])
    expect(reasonsOf(goOn(again, mine('d2', 100n), confirm('d2')))).toEqual(['LATE_DEPOSIT'])
  })

  test('a deposit that was seen in time and comes back after expiry is still in time', () => {
    const back = goOn(scenes.expiredVanished, mine('d1', 100n), confirm('d1'))
    expect(orderOf(back).state).toEqual({ status: 'EXCHANGE', settlement: null })
  })

  test('a mempool does not take a deposit out of its block', () => {
    const { story } = scenes.pendingMined
    const { decision } = tell(story, seen(story, 'd1', { isMined: false, atMs: LATE_MS }), LATE_MS)
    expect(decision.kind).toBe('ignored')
  })

  test('a deposit that is confirmed twice is booked once', () => {
    const { story, nowMs } = scenes.due
    const { decision } = tell(story, { kind: 'DepositConfirmed', key: keyOf('d1') }, nowMs)
    expect(decision.kind).toBe('ignored')
  })

  test('mined again with another amount, the new amount is what is received', () => {
    const changed = goOn(scenes.due, unmine('d1'), mineElsewhere('d1', ASKED / 2n), confirm('d1'))
    expect(reasonsOf(changed)).toEqual(['UNDERPAID'])
    expect(receivedSoFar(orderOf(changed)).units).toBe(ASKED / 2n)
  })

  test('mined again as dust or as another asset, it counts no more', () => {
    const dust = goOn(scenes.pendingMined, mineElsewhere('d1', 1n))
    expect([orderOf(dust).state.status, depositOf(dust, 'd1').role]).toEqual(['NEW', 'dust'])
    const amount = exactly('USDC:ERC20', '500000')
    const foreign = goOn(
      scenes.pendingMined,
      say((story) => seen(story, 'd1', { amount, atMs: LATE_MS })),
    )
    expect([orderOf(foreign).state.status, depositOf(foreign, 'd1').role]).toEqual(['NEW', 'foreign'])
    expect(receivedSoFar(orderOf(foreign)).units).toBe(0n)
  })

  test('the least deposit that counts does, and one unit less does not', () => {
    const least = exactly('ETH:ETH', '0.0001').units
    expect(depositOf(setScene({}, mineUnits('d1', least)), 'd1').role).toBe('counted')
    expect(depositOf(setScene({}, mineUnits('d1', least - 1n)), 'd1').role).toBe('dust')
  })

  test('less than a unit of precision too much is exact, and too little is too little', () => {
    const unit = 10n ** 10n
    const pays = (units: bigint) => setScene({}, mineUnits('d1', units), confirm('d1'))
    expect(orderOf(pays(ASKED)).state.status).toBe('EXCHANGE')
    expect(orderOf(pays(ASKED + unit - 1n)).state.status).toBe('EXCHANGE')
    expect(reasonsOf(pays(ASKED + unit))).toEqual(['OVERPAID'])
    expect(reasonsOf(pays(ASKED - 1n))).toEqual(['UNDERPAID'])
  })

  test('the deposits keep their order when one of them changes', () => {
    const scene = goOn(scenes.pendingTwo, unmine('d1'), mine('d1', 50n))
    expect(orderOf(scene).deposits.map(({ key }) => key)).toEqual([keyOf('d1'), keyOf('d2')])
  })
})

describe('what an exchange pays', () => {
  test('a fixed order that received what it asked for pays what it promised, whatever the market does', () => {
    const { story } = goOn(scenes.due, goOnWithPrice(-5_000n))
    expect(settled({ story, nowMs: 0 }).paid).toEqual(story.order.terms.promises)
  })

  test('within the tolerance, too little is paid at the locked rate and too much pays no more than promised', () => {
    const setting: Setting = { toleranceBps: 50n }
    const pays = (units: bigint) => setScene(setting, mineUnits('d1', units), confirm('d1'), price)
    const { promises } = startStory(setting).order.terms
    const least = settled(pays((ASKED * 9_950n) / 10_000n)).paid.units
    expect(least).toBeLessThanOrEqual((promises.units * 9_950n) / 10_000n)
    expect(least).toBeGreaterThan((promises.units * 9_949n) / 10_000n)
    expect(settled(pays((ASKED * 10_050n) / 10_000n)).paid).toEqual(promises)
    const tooLittle = setScene(setting, mineUnits('d1', (ASKED * 9_950n) / 10_000n - 1n), confirm('d1'))
    expect(reasonsOf(tooLittle)).toEqual(['UNDERPAID'])
    const tooMuch = (ASKED * 10_050n) / 10_000n + 10n ** 10n
    expect(reasonsOf(setScene(setting, mineUnits('d1', tooMuch), confirm('d1')))).toEqual(['OVERPAID'])
  })

  const LITTLE = ASKED / 5_000n
  const little = setScene({ toleranceBps: 9_999n }, mineUnits('d1', LITTLE), confirm('d1'))

  test('what the tolerance lets through and is not worth a payout is for the customer to choose about', () => {
    expect(reasonsOf(little)).toEqual(['UNDERPAID'])
    const float: Setting = { rateType: 'float', toleranceBps: 9_999n }
    const atMarket = setScene(float, mineUnits('d1', LITTLE), confirm('d1'))
    expect(reasonsOf(atMarket), 'only the market says what it is worth').toBe('EXCHANGE')
  })

  test('what the tolerance lets through is exchanged when it brings the least that is paid out, and not for less', () => {
    const setting: Setting = { toleranceBps: 9_999n }
    const { rate, promises } = startStory(setting).order.terms
    const least = convertBack(amountOf(promises.asset, assetOf(promises.asset).minPayout), rate, 'up').units
    const pays = (units: bigint) => setScene(setting, mineUnits('d1', units), confirm('d1'))
    expect(settled(goOn(pays(least), price)).paid.units).toBe(assetOf(promises.asset).minPayout)
    expect(reasonsOf(pays(least - 1n))).toEqual(['UNDERPAID'])
  })

  test('it stays so whatever comes into mempools, is replaced there or is dust, and a choice is taken', () => {
    const { sequence } = orderOf(little)
    let scene = little
    const dust = mineUnits('dust', 1n)
    for (const act of [see('d2', 50n), vanish('d2'), see('d3', 100n), dust, vanish('d3'), see('d2', 50n)]) {
      scene = goOn(scene, act)
      expect(reasonsOf(scene)).toEqual(['UNDERPAID'])
    }
    expect(orderOf(scene).sequence, 'nobody is told anything').toBe(sequence)
    expect(orderOf(goOn(scene, refund)).state.status).toBe('REFUND')
  })

  test('a top-up that makes it worth a payout lets it go on', () => {
    const pricedWith = (units: bigint) => goOn(little, mineUnits('d2', units), confirm('d2'))
    const whole = goOn(pricedWith(ASKED - LITTLE), price)
    const { promises } = orderOf(whole).terms
    expect(settled(whole)).toMatchObject({ received: { units: ASKED }, paid: promises })
    expect(settled(goOn(pricedWith(ASKED / 2n), price)).received.units).toBe(LITTLE + ASKED / 2n)
    expect(reasonsOf(pricedWith(LITTLE)), 'still not worth a payout').toEqual(['UNDERPAID'])
    expect(reasonsOf(pricedWith(ASKED * 2n))).toEqual(['OVERPAID'])
    expect(reasonsOf(goOn(little, mineUnits('d2', ASKED - LITTLE))), 'not confirmed yet').toEqual([
      'UNDERPAID',
    ])
  })

  test('what was worth a payout when its exchange began and is not any more is asked about, as what is there by then', () => {
    const reasonsWith = (...later: Parameters<typeof goOn>[1][]) => {
      const { story, nowMs } = goOn(
        setScene({ toleranceBps: 9_999n }, mine('d1', 100n), confirm('d1')),
        ...later,
      )
      const asked = amountOf(story.order.terms.from, LITTLE)
      const deposits = story.order.deposits.map((one) =>
        one.key === keyOf('d1') ? { ...one, amount: asked } : one,
      )
      const decision = decide({ ...story.order, deposits }, { kind: 'ExchangePriced', quote: null }, nowMs)
      assert(
        decision.kind === 'changed' && decision.order.state.status === 'EMERGENCY',
        'its customer is asked',
      )
      return decision.order.state.reasons
    }
    expect(reasonsWith()).toEqual(['UNDERPAID'])
    expect(reasonsWith(mine('d2', 300n), confirm('d2'))).toEqual(['OVERPAID'])
  })

  test('a float rate may fall by exactly what was agreed, and not by a unit more', () => {
    const { story, nowMs } = scenes.dueFloat
    const quote = priceNow(story)
    assert(quote !== null, 'it can be priced')
    const { promises } = story.order.terms
    // Rounded up: the least whole unit that is not more than 2 % below.
    const least = (promises.units * 9_800n + 9_999n) / 10_000n
    const becomes = (units: bigint) => {
      const priced = { ...quote, to: amountOf(promises.asset, units) }
      return tell(story, { kind: 'ExchangePriced', quote: priced }, nowMs).story.order.state.status
    }
    expect(becomes(least)).toBe('EXCHANGE')
    expect(becomes(least - 1n)).toBe('EMERGENCY')
  })

  test('within the tolerance it is the float rate that may fall, whatever was paid less or more', () => {
    const setting: Setting = { rateType: 'float', toleranceBps: 250n }
    const becomes = (paidBps: bigint, changeBps: bigint) => {
      const paid = setScene(setting, mineUnits('d1', (ASKED * paidBps) / 10_000n), confirm('d1'))
      return orderOf(goOn(paid, goOnWithPrice(changeBps))).state.status
    }
    expect(becomes(9_760n, 0n), 'less, at the same rate').toBe('EXCHANGE')
    expect(becomes(9_760n, -201n), 'less, and the rate fell').toBe('EMERGENCY')
    expect(becomes(10_240n, -199n), 'more, at the rate that was agreed').toBe('EXCHANGE')
    expect(becomes(10_240n, -400n), 'more, which hides how far the rate fell').toBe('EMERGENCY')
  })

  test('a float order is paid for every digit it received, and the payout has the digits of the interface', () => {
    const digits = ASKED + 9_999_999_999n
    const scene = setScene({ rateType: 'float' }, mineUnits('d1', digits), confirm('d1'), price)
    const { received, paid } = settled(scene)
    expect(received.units).toBe(digits)
    expect(paid.units % 10n ** 12n).toBe(0n)
  })

  test('the choice settles all that was received, at the quote it came with', () => {
    const scene = goOn(scenes.emergencyOver, goAhead)
    const { received, paid } = settled(scene)
    expect(received.units).toBe(2n * ASKED)
    expect(paid).toEqual(priceNow(scenes.emergencyOver.story)?.to)
    expect(marketOf(scene.story.order.terms).fee).toBe(scene.story.order.terms.feeShare)
  })

  test('what is on its way when the choice is made is nobody else’s money: it waits as unclaimed', () => {
    const scene = goOn(scenes.emergencyTopUp, goAhead, confirm('d2'))
    expect(settled(scene).received.units).toBe(ASKED / 2n)
    expect(depositOf(scene, 'd2').role).toBe('extra')
    expect(debitOf(scene.story, 'ETH:ETH', 'unclaimed')).toBe(-ASKED / 2n)
  })

  test('a top-up that completes the order lets it go on to what was promised', () => {
    const scene = goOn(scenes.emergencyTopUp, confirm('d2'), price)
    expect(settled(scene).paid).toEqual(scene.story.order.terms.promises)
  })
})

describe('deep reorganisations', () => {
  test('before anything was written down, the payout is cancelled and the order goes back', () => {
    const { story, nowMs } = scenes.planned
    const { decision } = tell(story, { kind: 'DepositUnmined', key: keyOf('d1') }, nowMs)
    assert(decision.kind === 'changed', 'it changes the order')
    expect(decision.effects).toEqual([{ kind: 'CancelPayout', payoutId: 'CB1234567890123456:1' }])
    const again = goOn(scenes.planned, unmine('d1'), mine('d1', 100n), confirm('d1'), price)
    expect(again.story.outflows.map(({ payoutId, state }) => [payoutId.slice(-2), state])).toEqual([
      [':1', 'cancelled'],
      [':2', 'planned'],
    ])
  })

  test.each(['done', 'refunded'] as const)('after %s, a lost deposit is missing until it is back', (name) => {
    const lost = goOn(scenes[name], unmine('d1'))
    const gone = goOn(lost, vanish('d1'))
    const missing = debitOf(lost.story, 'ETH:ETH', 'orphaned_deposits')
    expect(missing).toBe(name === 'done' ? ASKED : 2n * ASKED)
    expect(debitOf(gone.story, 'ETH:ETH', 'orphaned_deposits')).toBe(missing)
    const percent = name === 'done' ? 100n : 200n
    for (const scene of [lost, gone]) {
      const back = goOn(scene, mine('d1', percent), confirm('d1'))
      checkBooks(back.story)
      expect(debitOf(back.story, 'ETH:ETH', 'orphaned_deposits')).toBe(0n)
      expect(debitOf(back.story, 'ETH:ETH', 'unclaimed')).toBe(0n)
    }
  })

  test('a deposit of a payout that is written down stays that, however often its block is lost', () => {
    const lost = goOn(scenes.committed, unmine('d1'), mine('d1', 100n), unmine('d1'))
    expect(depositOf(lost, 'd1').role).toBe('counted')
    const back = goOn(lost, mine('d1', 100n), confirm('d1'))
    checkBooks(back.story)
    expect(debitOf(back.story, 'ETH:ETH', 'orphaned_deposits')).toBe(0n)
    expect(debitOf(back.story, 'ETH:ETH', 'unclaimed')).toBe(0n)
  })

  test('a deposit that comes back with another amount after its payout is other money', () => {
    const back = goOn(scenes.doneLost, mineElsewhere('d1', ASKED + 1n), confirm('d1'))
    expect(depositOf(back, 'd1').role).toBe('extra')
    expect(debitOf(back.story, 'ETH:ETH', 'orphaned_deposits')).toBe(ASKED)
    expect(debitOf(back.story, 'ETH:ETH', 'unclaimed')).toBe(-ASKED - 1n)
  })

  test('a deposit that vanished before the exchange and comes back after it is not part of it', () => {
    const scene = setScene(
      {},
      see('d2', 100n),
      vanish('d2'),
      mine('d1', 100n),
      confirm('d1'),
      price,
      writeDown,
      send,
    )
    const back = goOn(scene, mine('d2', 100n), confirm('d2'))
    expect(depositOf(back, 'd2').role).toBe('extra')
  })

  test.each([
    ['done', scenes.done],
    ['refunded', scenes.refunded],
  ])(
    'an order that is %s and whose payout is final again by another transaction tells that one',
    (_, scene) => {
      const before = orderOf(scene)
      assert(before.state.status === 'DONE' || before.state.status === 'REFUNDED', 'it has ended')
      const { payoutId } = before.state
      const found = {
        kind: 'PayoutConfirmed',
        payoutId,
        txHash: '0xother',
        cost: amountOf('ETH:ETH', 7n),
      } as const
      const later = before.updatedAtMs + 60_000
      expect(decide(before, found, later)).toEqual({
        kind: 'changed',
        order: { ...before, state: { ...before.state, txHash: '0xother' }, updatedAtMs: later },
        postings: [],
        effects: [],
      })
      expect(decide(before, { ...found, txHash: before.state.txHash }, later).kind).toBe('ignored')
      expect(decide(before, { ...found, payoutId: `${before.terms.id}:99` }, later).kind).toBe('ignored')
    },
  )

  test('deposit lost, then payout failed, then deposit back: it is booked once and paid once', () => {
    const reopened = goOn(scenes.withdrawLost, fail)
    expect(orderOf(reopened).state.status).toBe('PENDING')
    const back = goOn(reopened, mine('d1', 100n), confirm('d1'), price, writeDown, send, pay)
    expect(orderOf(back).state.status).toBe('DONE')
    expect(debitOf(back.story, 'ETH:ETH', 'customer_deposits')).toBe(0n)
  })

  test('half of it lost, then payout failed: what is left is the customer’s to choose about', () => {
    const half = goOn(scenes.emergencyTopUp, confirm('d2'), price, writeDown, send, unmine('d2'), fail)
    expect(reasonsOf(half)).toEqual(['UNDERPAID', 'DESTINATION_PROBLEM'])
    expect(debitOf(half.story, 'ETH:ETH', 'customer_deposits')).toBe(-ASKED / 2n)
    expect(reasonsOf(goOn(half, mine('d2', 50n), confirm('d2')))).toEqual(['DESTINATION_PROBLEM'])
  })

  test('the next outflow can be stopped although an earlier one was once on its way', () => {
    const again = goOn(scenes.withdrawLost, fail, mine('d1', 100n), confirm('d1'))
    expect(orderOf(again).state.status).toBe('EXCHANGE')
    expect(orderOf(again).isOutflowCommitted).toBe(false)
    expect(reasonsOf(goOn(again, stall))).toEqual(['NETWORK_PROBLEM'])
  })
})

describe('what came while the order could not use it counts when it is open again', () => {
  test.each(['withdrawGone', 'withdrawLost'] as const)('sent in place of a deposit, from %s', (name) => {
    const replaced = goOn(scenes[name], mine('d2', 100n), confirm('d2'))
    expect([depositOf(replaced, 'd2').role, unclaimed(replaced)]).toEqual(['extra', -ASKED])
    const failed = goOn(replaced, fail)
    expect(reasonsOf(failed)).toEqual(['DESTINATION_PROBLEM'])
    expect([depositOf(failed, 'd2').role, unclaimed(failed)]).toEqual(['counted', 0n])
    const paidBack = goOn(failed, refund, writeDown, send, pay)
    expect(orderOf(paidBack).state.status).toBe('REFUNDED')
  })

  test('and is not deep yet: it is what the order waits for', () => {
    const reopened = goOn(scenes.withdrawGone, mine('d2', 100n), fail)
    expect(orderOf(reopened).state.status).toBe('PENDING')
    expect(settled(goOn(reopened, confirm('d2'), price)).received.units).toBe(ASKED)
  })

  test('before anything was written down, and what it stands for may still come back', () => {
    const reopened = goOn(scenes.planned, mine('d2', 100n), confirm('d2'), unmine('d1'))
    expect(orderOf(reopened).state.status).toBe('PENDING')
    expect(receivedSoFar(orderOf(reopened)).units).toBe(2n * ASKED)
    expect(orderOf(goOn(reopened, vanish('d1'))).state.status).toBe('EXCHANGE')
    expect(reasonsOf(goOn(reopened, mine('d1', 100n), confirm('d1')))).toEqual(['OVERPAID'])
  })

  test('who is asked is asked about all of it', () => {
    const paidTwice = goOn(scenes.dueExtra, confirm('d2'), stall)
    expect(reasonsOf(paidTwice)).toEqual(['OVERPAID', 'NETWORK_PROBLEM'])
    const { state } = orderOf(goOn(paidTwice, refund))
    assert(state.status === 'REFUND', 'it is being refunded')
    expect(state.refund.amount.units + state.refund.networkFee.units).toBe(2n * ASKED)
  })

  test('what is there then is what is said of it', () => {
    const much = goOn(scenes.due, mine('d2', 300n), confirm('d2'))
    expect(reasonsOf(goOn(much, stall))).toEqual(['OVERPAID', 'NETWORK_PROBLEM'])
  })

  test('also what came back with another amount than a payout was made of', () => {
    const other = goOn(scenes.withdrawLost, mineElsewhere('d1', ASKED / 2n), confirm('d1'), fail)
    expect(reasonsOf(other)).toEqual(['UNDERPAID', 'DESTINATION_PROBLEM'])
    expect(unclaimed(other)).toBe(0n)
  })

  test('dust and other assets do not', () => {
    const dust = goOn(scenes.withdrawGone, mineUnits('d2', 1n), confirm('d2'), fail)
    expect(orderOf(dust).state.status).toBe('NEW')
    expect(unclaimed(dust)).toBe(-1n)
  })
})

describe('refunds', () => {
  test('a refund that fails gives the choice back, and the next one goes to the new address', () => {
    const elsewhere = say((story) => {
      const asked = refundNow(story, 1n)
      return { kind: 'ActionChosen', action: 'refund', refund: asked && { ...asked, address: 'elsewhere' } }
    })
    const scene = goOn(scenes.emergencyUnder, refund, writeDown, send, fail)
    expect(reasonsOf(scene)).toEqual(['UNDERPAID', 'DESTINATION_PROBLEM'])
    const again = goOn(scene, elsewhere, writeDown, send, pay)
    expect(orderOf(again)).toMatchObject({
      state: { status: 'REFUNDED' },
      refundAddress: 'elsewhere',
      outflowCount: 2,
    })
  })

  test('what failed payouts and refunds took of the network is kept with the order', () => {
    const failFor = (units: bigint, asset: AssetId) =>
      say((story) => ({
        kind: 'PayoutFailed',
        payoutId: liveOutflow(story)?.payoutId ?? 'none',
        problem: 'DESTINATION_PROBLEM',
        cost: amountOf(asset, units),
      }))
    const { story } = scenes.emergencyUnder
    const nativeTo = nativeAsset(assetOf(story.order.terms.to).chain).id
    const nativeFrom = nativeAsset(assetOf(story.order.terms.from).chain).id
    const failed = goOn(
      scenes.emergencyUnder,
      ...[refund, writeDown, send, failFor(5n, nativeFrom)],
      ...[refund, writeDown, send, failFor(7n, nativeFrom)],
      ...[goAhead, writeDown, send, failFor(11n, nativeTo)],
    )
    expect(orderOf(failed).failedCosts).toEqual({
      payouts: amountOf(nativeTo, 11n),
      refunds: amountOf(nativeFrom, 12n),
    })
  })

  describe('an outflow that failed where another one would pay is made anew', () => {
    const overtaken = say((told) => {
      const payoutId = liveOutflow(told)?.payoutId ?? 'none'
      const cost = costOn(
        told.order.state.status === 'REFUND' ? told.order.terms.from : told.order.terms.to,
        11n,
      )
      return { kind: 'PayoutFailed', payoutId, problem: 'DESTINATION_PROBLEM', cost, wouldPayNow: true }
    })

    test.each([
      ['a payout', scenes.withdraw, 'EXCHANGE'],
      ['a refund', scenes.refundSent, 'REFUND'],
    ] as const)('%s, for what was agreed', (_, scene, status) => {
      const before = orderOf(scene)
      const after = orderOf(goOn(scene, overtaken))
      const number = before.outflowCount + 1
      expect(after).toMatchObject({ outflowCount: number, isOutflowCommitted: false })
      const { txHash: _sent, ...agreed } = before.state as typeof before.state & { txHash: string }
      const payoutId = `${before.terms.id}:${number}`
      expect(after.state).toEqual({
        ...agreed,
        status,
        payoutId,
        ...(status === 'REFUND' && { txHash: null }),
      })
    })

    test('once, and then its customer is asked', () => {
      const again = goOn(scenes.withdraw, overtaken, writeDown, send, overtaken)
      expect(reasonsOf(again)).toEqual(['DESTINATION_PROBLEM'])
      expect(orderOf(again).failedCosts.payouts.units).toBe(22n)
    })

    test('not while what was deposited for it is missing', () => {
      expect(orderOf(goOn(scenes.withdrawLost, overtaken)).state.status).toBe('PENDING')
    })
  })

  describe('an order whose outflow has failed at its cost is not exchanged again before its customer says so', () => {
    const failAt = (asset: AssetId) =>
      say((told) => {
        const payoutId = liveOutflow(told)?.payoutId ?? 'none'
        return { kind: 'PayoutFailed', payoutId, problem: 'DESTINATION_PROBLEM', cost: costOn(asset, 11n) }
      })
    const { from, to } = scenes.due.story.order.terms
    const payoutFailed = goOn(scenes.withdraw, failAt(to))
    const back = [unmine('d1'), mine('d1', 100n), confirm('d1')]

    test('when its deposit comes back', () => {
      const emergency = goOn(payoutFailed, ...back)
      expect(reasonsOf(emergency)).toEqual(['DESTINATION_PROBLEM'])
      expect(orderOf(emergency).failedCosts).toEqual(orderOf(payoutFailed).failedCosts)
      expect(orderOf(goOn(emergency, goAhead)).state).toMatchObject({
        status: 'EXCHANGE',
        payoutId: expect.stringMatching(/:2$/),
      })
    })

    test('at a float rate', () => {
      const failed = goOn(scenes.dueFloat, price, writeDown, send, failAt(to))
      expect(reasonsOf(goOn(failed, ...back))).toEqual(['DESTINATION_PROBLEM'])
    })

    test('when its payout fails after its deposit was lost', () => {
      const reopened = goOn(scenes.withdrawLost, failAt(to))
      expect(orderOf(reopened).state.status).toBe('PENDING')
      expect(reasonsOf(goOn(reopened, mine('d1', 100n), confirm('d1')))).toEqual(['DESTINATION_PROBLEM'])
    })

    test('when it was the refund, and what comes back is something else', () => {
      const lost = goOn(scenes.refundSent, failAt(from), unmine('d1'), vanish('d1'))
      expect(reasonsOf(goOn(lost, mine('d2', 100n), confirm('d2')))).toEqual(['DESTINATION_PROBLEM'])
    })

    test('and what is wrong with its deposits is said first', () => {
      const lost = goOn(payoutFailed, unmine('d1'), vanish('d1'))
      const half = goOn(lost, mine('d2', 50n), confirm('d2'))
      expect(reasonsOf(half)).toEqual(['UNDERPAID', 'DESTINATION_PROBLEM'])
      expect(reasonsOf(goOn(half, mine('d3', 50n), confirm('d3')))).toEqual(['DESTINATION_PROBLEM'])
    })

    test('one that failed at no cost of its is asked again as well, and told no more than that', () => {
      expect(reasonsOf(goOn(scenes.emergencyFailed, ...back))).toEqual(['NETWORK_PROBLEM'])
    })
  })

  describe('who has chosen his money is not given the exchange because a block was lost', () => {
    const chosen = goOn(scenes.emergencySlipped, refund)

    test('when the deposit is back', () => {
      const again = goOn(chosen, unmine('d1'), mine('d1', 100n), confirm('d1'))
      expect(reasonsOf(again)).toEqual(['NETWORK_PROBLEM'])
      expect(orderOf(again).refundAddress).toBe('refund address')
      expect(settled(goOn(again, goAhead)).received.units).toBe(ASKED)
    })

    test('when the refund was written down, and could not be made', () => {
      const again = goOn(chosen, writeDown, unmine('d1'), fail, mine('d1', 100n), confirm('d1'))
      expect(reasonsOf(again)).toEqual(['NETWORK_PROBLEM'])
    })

    test('when something else comes instead, and more completes it', () => {
      const half = goOn(chosen, unmine('d1'), vanish('d1'), mine('d2', 50n), confirm('d2'))
      expect(reasonsOf(half)).toEqual(['UNDERPAID', 'NETWORK_PROBLEM'])
      expect(reasonsOf(goOn(half, mine('d3', 50n), confirm('d3')))).toEqual(['NETWORK_PROBLEM'])
    })

    test('whoever was asked and has not chosen has his top-up counted as before', () => {
      const again = goOn(scenes.emergencyUnder, unmine('d1'), mine('d1', 50n), confirm('d1'))
      expect(orderOf(goOn(again, mine('d2', 50n), confirm('d2'))).state.status).toBe('EXCHANGE')
    })

    test('nor is anybody asked silently, who was told of nothing but the amount and has completed it', () => {
      const lost = goOn(scenes.planned, unmine('d1'), vanish('d1'), mine('d2', 50n), confirm('d2'))
      expect(reasonsOf(lost)).toEqual(['UNDERPAID'])
      expect(orderOf(goOn(lost, mine('d3', 50n), confirm('d3'))).state.status).toBe('EXCHANGE')
    })
  })

  test('what failed because of us is booked, and kept from nobody', () => {
    const { story } = scenes.emergencyUnder
    const cost = costOn(story.order.terms.from, 5n)
    const failOurs = say((told) => {
      const payoutId = liveOutflow(told)?.payoutId ?? 'none'
      return { kind: 'PayoutFailed', payoutId, problem: 'NETWORK_PROBLEM', cost }
    })
    const failed = goOn(scenes.emergencyUnder, refund, writeDown, send, failOurs)
    expect(reasonsOf(failed)).toEqual(['UNDERPAID', 'NETWORK_PROBLEM'])
    expect(orderOf(failed).failedCosts).toEqual(nothingFailed(story.order.terms))
  })

  test('what is returned and what is charged are together what was received', () => {
    const { state } = orderOf(scenes.refundPlanned)
    assert(state.status === 'REFUND', 'it is being refunded')
    expect(state.refund.amount.units + state.refund.networkFee.units).toBe(2n * ASKED)
    expect(showAmount(state.refund.amount, 'down')).toBe('0.99999999')
  })

  test.each([
    ['nothing', 0n, 'INVALID_ACTION'],
    ['less than nothing', -1n, 'INVALID_ACTION'],
    ['more than was received', 2n * ASKED + 1n, 'INVALID_ACTION'],
  ])('%s is not returned, whatever the charge would be', (_, units, code) => {
    const { story, nowMs } = scenes.emergencyOver
    const amount = (of: bigint) => amountOf(story.order.terms.from, of)
    const asked = { amount: amount(units), networkFee: amount(2n * ASKED - units), address: 'elsewhere' }
    const fact = { kind: 'ActionChosen', action: 'refund', refund: asked, quote: null } as const
    expect(decide(story.order, fact, nowMs)).toMatchObject({ kind: 'refused', code })
  })

  test('all of it may be returned, where that costs nothing', () => {
    const all = say(({ order }) => {
      const amount = amountOf(order.terms.from, 2n * ASKED)
      return {
        kind: 'ActionChosen',
        action: 'refund',
        refund: { amount, networkFee: amountOf(amount.asset, 0n), address: 'all' },
      }
    })
    expect(orderOf(goOn(scenes.emergencyOver, all)).state).toMatchObject({ status: 'REFUND' })
  })
})

describe('dust', () => {
  const { order } = startStory()
  const rest = dustLeft(order)
  const short = mineUnits('d1', allButDust(order))
  const dust = mineUnits('dust', rest)
  const roleOf = (scene: Scene) => depositOf(scene, 'dust').role
  const underpaid = setScene({}, short, confirm('d1'))

  test('that is all an order was short of lets it go on', () => {
    const mined = goOn(underpaid, dust)
    expect([roleOf(mined), receivedSoFar(orderOf(mined)).units]).toEqual(['counted', ASKED])
    expect(reasonsOf(mined)).toEqual(['UNDERPAID'])
    const due = goOn(mined, confirm('dust'))
    expect([orderOf(due).state.status, unclaimed(due)]).toEqual(['EXCHANGE', 0n])
    const settled = orderOf(goOn(due, price))
    expect(settled.state).toMatchObject({
      settlement: { received: { units: ASKED }, paid: settled.terms.promises },
    })
  })

  test('counts whatever came first, also when it was booked as unclaimed', () => {
    const first = setScene({}, dust, confirm('dust'))
    expect([orderOf(first).state.status, roleOf(first), unclaimed(first)]).toEqual(['NEW', 'dust', -rest])
    const both = goOn(first, short)
    expect([orderOf(both).state.status, roleOf(both), unclaimed(both)]).toEqual(['PENDING', 'counted', 0n])
    expect(orderOf(goOn(both, confirm('d1'))).state.status).toBe('EXCHANGE')
    const atOnce = setScene({}, dust, short, confirm('dust'), confirm('d1'))
    expect(orderOf(atOnce).state.status).toBe('EXCHANGE')
  })

  test.each([
    ['leaves too little', setScene({}, short, mineUnits('dust', rest - 1n))],
    ['makes it too much', setScene({}, short, mineUnits('dust', rest + 10n ** 10n))],
    ['comes to what was asked already', setScene({}, mine('d1', 100n), dust)],
    ['comes to too much', setScene({}, mine('d1', 200n), dust)],
    ['comes where the tolerance asks for no more', setScene({ toleranceBps: 50n }, short, dust)],
  ])('that %s does not', (_, scene) => {
    expect(roleOf(scene)).toBe('dust')
    expect(orderOf(scene).state.status).not.toBe('EXCHANGE')
  })

  test('counts once, and what else fits does when that one is gone', () => {
    const twice = goOn(underpaid, dust, mineUnits('more', rest))
    expect([roleOf(twice), depositOf(twice, 'more').role]).toEqual(['counted', 'dust'])
    const other = goOn(twice, confirm('more'), unmine('dust'))
    expect([roleOf(other), depositOf(other, 'more').role]).toEqual(['dust', 'counted'])
    expect(unclaimed(other)).toBe(0n)
    const back = goOn(other, dust)
    expect([roleOf(back), depositOf(back, 'more').role]).toEqual(['dust', 'counted'])
  })

  test('counts within the tolerance of what was asked', () => {
    const least = exactly('ETH:ETH', '0.4975').units
    const setting = { toleranceBps: 50n }
    expect(roleOf(setScene(setting, mineUnits('d1', least - rest), dust))).toBe('counted')
    expect(roleOf(setScene(setting, mineUnits('d1', least - rest - 1n), dust))).toBe('dust')
  })

  test('is dust again when a reorganisation takes what it completes, and counts when that is back', () => {
    const due = goOn(underpaid, dust, confirm('dust'))
    const lost = goOn(due, unmine('d1'))
    expect([orderOf(lost).state.status, roleOf(lost), unclaimed(lost)]).toEqual(['PENDING', 'dust', -rest])
    const gone = goOn(lost, vanish('d1'))
    expect([orderOf(gone).state.status, unclaimed(gone)]).toEqual(['NEW', -rest])
    const back = goOn(gone, short)
    expect([roleOf(back), unclaimed(back)]).toEqual(['counted', 0n])
    expect(orderOf(goOn(back, confirm('d1'))).state.status).toBe('EXCHANGE')
  })

  test('is waited for when its own block is lost, and nothing stays booked of it', () => {
    for (const acts of [[confirm('dust'), unmine('dust')], [unmine('dust')]]) {
      const lost = goOn(setScene({}, short, dust, confirm('d1')), ...acts)
      expect([orderOf(lost).state.status, roleOf(lost), unclaimed(lost)]).toEqual(['PENDING', 'counted', 0n])
      expect(orderOf(goOn(lost, dust, confirm('dust'))).state.status).toBe('EXCHANGE')
      expect(reasonsOf(goOn(lost, vanish('dust')))).toEqual(['UNDERPAID'])
    }
  })

  test('of a payout that is on its way stays a part of it', () => {
    const paid = goOn(underpaid, dust, confirm('dust'), price, writeDown, send)
    const lost = goOn(paid, unmine('dust'))
    expect([roleOf(lost), orphaned(orderOf(lost)).units]).toEqual(['counted', rest])
    const back = goOn(lost, dust, confirm('dust'))
    expect([roleOf(back), orphaned(orderOf(back)).units]).toEqual(['counted', 0n])
    const failed = goOn(lost, fail)
    expect(reasonsOf(failed)).toEqual(['UNDERPAID', 'DESTINATION_PROBLEM'])
    const both = goOn(paid, unmine('d1'), fail)
    expect([roleOf(both), unclaimed(both)]).toEqual(['dust', -rest])
  })

  test('is dust again when the payout fails and more has come meanwhile', () => {
    const scene = goOn(underpaid, dust, confirm('dust'), price, mine('d2', 50n), confirm('d2'), fail)
    expect([roleOf(scene), unclaimed(scene)]).toEqual(['dust', -rest])
    expect(reasonsOf(scene)).toEqual(['OVERPAID', 'DESTINATION_PROBLEM'])
  })

  test('is not kept from counting by what others let lie in a mempool', () => {
    const scene = goOn(underpaid, see('d2', 50n), dust, confirm('dust'))
    expect([orderOf(scene).state.status, depositOf(scene, 'd2').role]).toEqual(['EXCHANGE', 'extra'])
  })

  test('that comes too late is for the customer to choose about', () => {
    const late = goOn({ ...underpaid, nowMs: LATE_MS }, dust, confirm('dust'))
    expect([roleOf(late), reasonsOf(late)]).toEqual(['counted', ['LATE_DEPOSIT']])
  })

  test('that is on its way when the choice is made is dust', () => {
    const chosen = goOn(underpaid, dust, refund)
    expect(roleOf(chosen)).toBe('dust')
    expect(unclaimed(goOn(chosen, confirm('dust')))).toBe(-rest)
  })
})

test('what a machine decides whose clock is behind happened no earlier than what happened before', () => {
  const { terms, updatedAtMs } = startStory().order
  const fact = { kind: 'OrderExpired', atMs: terms.expiresAtMs } as const
  for (const [nowMs, expected] of [
    [updatedAtMs - 1, updatedAtMs],
    [updatedAtMs + 1, updatedAtMs + 1],
  ] as const) {
    expect(decide(startStory().order, fact, nowMs)).toMatchObject({
      order: { state: { status: 'EXPIRED' }, updatedAtMs: expected },
    })
  }
  for (const { story } of [scenes.withdraw, scenes.refundSent]) {
    const changedAtMs = story.order.updatedAtMs
    for (const [behindMs, expected] of [
      [1, changedAtMs],
      [-1, changedAtMs + 1],
    ] as const) {
      const { order } = goOn({ story, nowMs: changedAtMs - behindMs }, pay).story
      expect(order).toMatchObject({ updatedAtMs: expected, state: { completedAtMs: expected } })
    }
  }
})

test('a fact that nobody knows stops everything', () => {
  expect(() => decide(startStory().order, { kind: 'DepositBurnt' } as never, LATE_MS)).toThrow('DepositBurnt')
})
