import { describe, expect, test } from 'vitest'
import type { CallFrame } from './call_frame.ts'
import { valueMoves } from './value_moves.ts'

const frame = (change: Partial<CallFrame>): CallFrame => ({
  kind: 'CALL',
  from: '0xa',
  to: '0xb',
  wei: 1n,
  isFailed: false,
  calls: [],
  ...change,
})
const paths = (root: CallFrame) => valueMoves(root).map(({ path }) => path)

describe('what moved in a transaction', () => {
  test("its own value and its calls', numbered by their place", () => {
    const root = frame({
      wei: 9n,
      calls: [
        frame({ wei: 2n }),
        frame({ wei: 0n, calls: [frame({ wei: 3n }), frame({ wei: 4n, to: '0xc' })] }),
      ],
    })
    expect(valueMoves(root)).toEqual([
      { path: '0', from: '0xa', to: '0xb', wei: 9n },
      { path: '0.0', from: '0xa', to: '0xb', wei: 2n },
      { path: '0.1.0', from: '0xa', to: '0xb', wei: 3n },
      { path: '0.1.1', from: '0xa', to: '0xc', wei: 4n },
    ])
  })

  test('nothing below a call that failed, though the calls below it say nothing of that', () => {
    const undone = frame({ isFailed: true, calls: [frame({ calls: [frame({})] })] })
    expect(paths(frame({ wei: 0n, calls: [undone, frame({})] }))).toEqual(['0.0'])
    expect(paths(undone)).toEqual([])
  })

  test.each(['DELEGATECALL', 'CALLCODE', 'STATICCALL', 'SOMETHINGNEW'])(
    'nothing by %s, but what is paid inside it',
    (kind) => {
      expect(paths(frame({ wei: 0n, calls: [frame({ kind, wei: 5n })] }))).toEqual([])
      expect(paths(frame({ wei: 0n, calls: [frame({ kind, wei: 5n, calls: [frame({})] })] }))).toEqual([
        '0.0.0',
      ])
    },
  )

  test.each(['CALL', 'CREATE', 'CREATE2', 'SELFDESTRUCT'])('the value of %s', (kind) => {
    expect(paths(frame({ kind }))).toEqual(['0'])
  })

  test('of a SELFDESTRUCT with the account that ran it, whatever the node says left something', () => {
    const left = frame({ kind: 'SELFDESTRUCT', from: '0x5', to: '0x6' })
    const ranBy = (...kinds: readonly string[]) =>
      valueMoves(
        kinds.reduceRight((inner, kind, at) => frame({ kind, wei: 0n, to: `0x${at}`, calls: [inner] }), left),
      ).map(({ selfdestructOf }) => selfdestructOf)
    expect(ranBy('CALL')).toEqual(['0x0'])
    expect(ranBy('CALL', 'CALL')).toEqual(['0x1'])
    expect(ranBy('CALL', 'CREATE2')).toEqual(['0x1'])
    expect(ranBy('CALL', 'DELEGATECALL')).toEqual(['0x0'])
    expect(ranBy('CALL', 'CALL', 'CALLCODE', 'DELEGATECALL')).toEqual(['0x1'])
    expect(valueMoves(frame({}))[0]).not.toHaveProperty('selfdestructOf')
  })

  test('nothing to oneself, nothing of nothing', () => {
    expect(paths(frame({ to: '0xa' }))).toEqual([])
    expect(paths(frame({ wei: 0n }))).toEqual([])
  })

  test('the number does not depend on calls that move nothing, which not every node tells of', () => {
    const paid = frame({ to: '0xc' })
    const precompile = frame({ kind: 'STATICCALL', wei: 0n })
    const failed = frame({ isFailed: true })
    const terse = frame({ wei: 0n, calls: [frame({}), paid] })
    const wordy = frame({ wei: 0n, calls: [precompile, frame({}), failed, precompile, paid] })
    expect(valueMoves(wordy)).toEqual(valueMoves(terse))
  })

  test('a path as deep as the call stack still makes a short name, and its own', () => {
    const deep = (levels: number): CallFrame => {
      let inner = frame({})
      for (let level = 0; level < levels; level += 1) inner = frame({ wei: 0n, calls: [inner] })
      return inner
    }
    const [left, right] = [paths(deep(1_000))[0] ?? '', paths(deep(1_001))[0] ?? '']
    expect(left).toMatch(/^[0-9a-f]{64}$/)
    expect(left).not.toBe(right)
  })
})
