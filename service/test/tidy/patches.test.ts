import { expect, test } from 'vitest'
import { controls } from '../proof/crash/controls.ts'
import { misfitOf, quickSuccession, seldomAsking } from '../proof/crash/patches.ts'

/**
 * What: every line of the service that the crash test replaces is there, once.
 * How: the processes of that test look themselves before they start, and nobody waits for them to find out.
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
