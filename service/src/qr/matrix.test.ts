import { encodeQR } from 'qr'
import { describe, expect, test } from 'vitest'
import { type CorrectionLevel, dataCodewords, planQr, QUIET_ZONE_MODULES, qrMatrix } from './matrix.ts'

const levels = ['low', 'medium', 'quartile', 'high'] as const satisfies readonly CorrectionLevel[]
const versions = Array.from({ length: 40 }, (_, index) => index + 1)

/** Bytes that fit, by the table: what is left after the mode and the character count. */
function byteCapacity(version: number, level: CorrectionLevel): number {
  return (dataCodewords[level][version - 1] ?? 0) - (version < 10 ? 2 : 3)
}

function encodes(text: string, version: number, ecc: CorrectionLevel): boolean {
  try {
    encodeQR(text, 'raw', { ecc, version, encoding: 'byte' })
    return true
  } catch (error) {
    if (error instanceof Error && error.message === 'Capacity overflow') return false
    throw error
  }
}

describe('the capacity table', () => {
  test.each(levels)('is what the encoder holds in all 40 versions at level %s', (level) => {
    expect(dataCodewords[level]).toHaveLength(40)
    for (const version of versions) {
      const capacity = byteCapacity(version, level)
      expect(encodes('a'.repeat(capacity), version, level), `${version} ${level} full`).toBe(true)
      expect(encodes('a'.repeat(capacity + 1), version, level), `${version} ${level} over`).toBe(false)
    }
  })
})

describe('the level', () => {
  test('is the highest that leaves the symbol as small as level M makes it', () => {
    for (let length = 1; length <= byteCapacity(40, 'medium'); length += 7) {
      const text = 'a'.repeat(length)
      const version = versions.find((candidate) => encodes(text, candidate, 'medium'))
      const level = levels.findLast((candidate) => encodes(text, version ?? 0, candidate))
      expect(planQr(text), `${length} bytes`).toEqual({ version, level, encoding: 'byte' })
    }
  })

  test('is L only where M does not fit at all', () => {
    expect(planQr('a'.repeat(byteCapacity(40, 'medium')))?.level).toBe('medium')
    expect(planQr('a'.repeat(byteCapacity(40, 'medium') + 1))).toMatchObject({ version: 36, level: 'low' })
    expect(planQr('a'.repeat(byteCapacity(40, 'low')))?.level).toBe('low')
    expect(planQr('a'.repeat(byteCapacity(40, 'low') + 1))).toBeNull()
  })

  test('counts bytes, not characters', () => {
    expect(planQr('é'.repeat(14))).toEqual(planQr('a'.repeat(28)))
  })

  test.each([
    ['digits', '7'],
    ['capitals', 'B'],
  ])('is chosen by the denser encoding where the text is all %s', (_kind, character) => {
    for (const length of [1, 2, 3, 10, 16, 25, 41, 100, 333, 1000, 2000]) {
      const text = character.repeat(length)
      const plan = planQr(text)
      if (plan === null) throw new Error('it fits')
      const smallest = encodeQR(text, 'raw', { ecc: 'medium', border: QUIET_ZONE_MODULES }).length
      expect(qrMatrix(text, plan), text).toHaveLength(smallest)
    }
  })
})
