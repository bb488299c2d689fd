import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { mergeRuns, overviewOf, type ProofRun, showRuns } from '../proof/proof_page.ts'

const docs = join(import.meta.dirname, '../../../docs')
const page = readFileSync(join(docs, 'proof.md'), 'utf8')
const runs = JSON.parse(readFileSync(join(docs, 'proof_runs.json'), 'utf8')) as readonly ProofRun[]

function run(claim: string, more: Partial<ProofRun> = {}): ProofRun {
  return { claim, part: null, seed: 1, code: 'c0ffee0', tookSeconds: 60, figures: [], ...more }
}

test('the page shows the runs that are written down', () => {
  expect(showRuns(page, runs)).toBe(page)
  expect(mergeRuns(runs, [])).toEqual(runs)
})

test('a run takes the place of the one before it, under whatever seed, and of no other', () => {
  const standing = [run('all ends'), run('nothing is lost')]
  const made = run('all ends', { seed: 7 })
  expect(mergeRuns(standing, [made])).toEqual([made, standing[1]])
})

test('a part takes the place of the same part under the same seed alone', () => {
  const part = (number: number, seed = 1) => run('all ends', { part: { number, of: 2 }, seed })
  const again = { ...part(2), tookSeconds: 61 }
  expect(mergeRuns([part(1), part(2)], [again, part(2, 7)])).toEqual([part(1), again, part(2, 7)])
})

test('a claim has a column for each of its runs, and a figure that one lacks is missing there only', () => {
  const first = run('all ends', {
    part: { number: 1, of: 2 },
    figures: [{ what: 'orders', value: '1,000' }],
  })
  const second = run('all ends', {
    part: { number: 2, of: 2 },
    figures: [
      { what: 'orders', value: '2,000' },
      { what: 'ends', value: 'a|b' },
    ],
  })
  const shown = showRuns(page, [first, second])
  expect(shown).toContain('| All ends | seed 1, part 2 of 2 | c0ffee0 | 60 s |')
  expect(shown).toContain(
    [
      '|  | seed 1, part 1 of 2 | seed 1, part 2 of 2 |',
      '| --- | --- | --- |',
      '| orders | 1,000 | 2,000 |',
      '| ends | – | a\\|b |',
    ].join('\n'),
  )
  expect(overviewOf([first]).split('\n')).toHaveLength(3)
})

test('a page without a place for runs is not written over', () => {
  expect(() => showRuns('# Proof', [])).toThrow('has to have two lines')
})
