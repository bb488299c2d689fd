import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { controls } from '../proof/crash/controls.ts'
import { misfitOf, quickSuccession, seldomAsking } from '../proof/crash/patches.ts'
import { points } from '../proof/crash/points.ts'

/**
 * What: every line of the service that the crash test replaces is there, once, and every function at which it kills.
 * How: the processes of that test find out themselves, and nobody waits for them to.
 */
test('a patch that fits nowhere, or twice, is named', () => {
  const patch = { file: 'engine/lease.ts', replace: '' }
  expect(misfitOf({ ...patch, find: 'no such line' })).toMatch(
    /engine\/lease\.ts .* 0 times is\nno such line$/,
  )
  expect(misfitOf({ ...patch, find: 'import ' })).toMatch(/\d+ times/)
})

test.each(controls)('a service that is bad by $name can be made of the code as it is', ({ patches }) => {
  expect([...quickSuccession, ...patches].map(misfitOf).filter((misfit) => misfit !== null)).toEqual([])
})

test('the service of the crash test can be made of the code as it is', () => {
  expect([...quickSuccession, seldomAsking].map(misfitOf).filter((misfit) => misfit !== null)).toEqual([])
})

test('every function at which a process is killed is where the crash test looks for it', () => {
  const missing = points
    .flatMap(({ places }) => places)
    .filter(({ file, name }) => !exportsFunction(file, name))
    .map(({ file, name }) => `${file} exports no function ${name}`)
  expect(missing).toEqual([])
  expect(exportsFunction('db/outflows.ts', 'noSuchFunction')).toBe(false)
})

/** `file` is below service/src. */
function exportsFunction(file: string, name: string): boolean {
  const source = readFileSync(new URL(`../../src/${file}`, import.meta.url), 'utf8')
  return new RegExp(`^export (async function|function|const) ${name}\\b`, 'm').test(source)
}
