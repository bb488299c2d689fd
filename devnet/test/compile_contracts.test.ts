import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { compileAhead, compileContracts } from '../src/evm/compile_contracts.ts'

/**
 * What: compiling the contracts keeps nobody waiting who has asked a node something meanwhile, and is done once.
 * How: the real compiler, and an empty cache.
 */
let cache: string

beforeEach(() => {
  cache = mkdtempSync(join(tmpdir(), 'cambist-cache-'))
  vi.stubEnv('XDG_CACHE_HOME', cache)
})

afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(cache, { recursive: true, force: true })
})

test('everything else goes on while contracts are compiled, and whoever wants them finds them made', async () => {
  let turns = 0
  const others = setInterval(() => {
    turns += 1
  })
  const lines: string[] = []
  await compileAhead((line) => lines.push(line))
  expect(turns).toBeGreaterThan(0)
  expect(lines).toEqual([expect.stringContaining('compiling with solc')])

  await compileAhead((line) => lines.push(line))
  expect(lines).toHaveLength(1)
  expect(compileContracts().TestToken.bytecode).toMatch(/^0x60/)
  clearInterval(others)
})
