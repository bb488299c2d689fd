import { assert } from '../../domain/assert.ts'
import type { SignedRecord, SignedStore } from '../signer.ts'

/** What the database's store promises, without a database. One event-loop turn is its transaction. */
export function memoryStore(): SignedStore & { readonly records: SignedRecord[] } {
  const records: SignedRecord[] = []
  const attempts = (payoutId: string) =>
    records.filter((record) => record.payoutId === payoutId).sort((a, b) => a.attempt - b.attempt)
  return {
    records,
    async attempts(payoutId) {
      return structuredClone(attempts(payoutId))
    },
    async insertOnce(record, limits) {
      const stored = attempts(record.payoutId).find(({ attempt }) => attempt === record.attempt)
      if (stored !== undefined) return structuredClone(stored)
      for (const { asset, windowMs, unitsMax, countsEveryAttempt } of limits) {
        assert(asset === record.asset, 'limits are those of the asset that leaves')
        const spent = records
          .filter((other) => other.asset === asset && other.atMs > record.atMs - windowMs)
          .filter(({ attempt }) => countsEveryAttempt || attempt === 1)
          .reduce((sum, other) => sum + other.units, 0n)
        if (spent + record.units > unitsMax) return null
      }
      records.push(structuredClone(record))
      return structuredClone(record)
    },
  }
}
