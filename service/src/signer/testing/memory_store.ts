import { assert } from '../../domain/assert.ts'
import { readPayoutId } from '../../domain/orders/identifiers.ts'
import type { CheckedLimit, SignedRecord, SignedStore } from '../signer.ts'

/** What the database's store promises, without a database. One event-loop turn is its transaction. */
export function memoryStore(): SignedStore & { readonly records: SignedRecord[] } {
  const records: SignedRecord[] = []
  const attempts = (payoutId: string) =>
    records.filter((record) => record.payoutId === payoutId).sort((a, b) => a.attempt - b.attempt)
  const spent = ({ asset, windowMs, countsEveryAttempt }: CheckedLimit, nowMs: number) =>
    records
      .filter((record) => record.asset === asset && record.atMs > nowMs - windowMs)
      .filter(({ attempt }) => countsEveryAttempt || attempt === 1)
      .reduce((sum, { units }) => sum + units, 0n)
  return {
    records,
    spent: async (limit, nowMs) => spent(limit, nowMs),
    async attempts(payoutId) {
      return structuredClone(attempts(payoutId))
    },
    async lastOutflow(orderId) {
      const ofOrder = records
        .map(({ payoutId }) => readPayoutId(payoutId))
        .filter((one) => one.orderId === orderId)
      return Math.max(0, ...ofOrder.map(({ number }) => number))
    },
    async insertOnce(record, limits) {
      const stored = attempts(record.payoutId).find(({ attempt }) => attempt === record.attempt)
      if (stored !== undefined) return structuredClone(stored)
      for (const limit of limits) {
        assert(limit.asset === record.asset, 'limits are those of the asset that leaves')
        if (spent(limit, record.atMs) + record.units > limit.unitsMax) return 'limit_exceeded'
      }
      const { orderId, number } = readPayoutId(record.payoutId)
      const others = records.map(({ payoutId }) => readPayoutId(payoutId))
      if (others.some((one) => one.orderId === orderId && one.number > number)) return 'overtaken'
      const same = records.find(({ tx }) => tx.txHash === record.tx.txHash)
      if (same !== undefined) return structuredClone(same)
      records.push(structuredClone(record))
      return structuredClone(record)
    },
  }
}
