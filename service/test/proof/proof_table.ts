import { readFileSync, writeFileSync } from 'node:fs'
import type { Reporter, TestCase, TestModule } from 'vitest/node'
import type { ProofRecord } from './prove.ts'

/**
 * Ends `npm run prove` with a table of what was shown. A claim that held replaces its row in the page, so that the
 * long proofs may also be run one at a time; one that did not hold is printed and never written.
 */
export default class ProofTable implements Reporter {
  readonly #page: string

  constructor(page: string) {
    this.#page = page
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    const rows = tests.flatMap(rowOf)
    console.log(`\n${HEAD}\n${rows.map(({ line }) => line).join('\n')}`)
    putRows(
      this.#page,
      rows.filter(({ held }) => held).map(({ line }) => line),
    )
  }
}

const HEAD = '| Claim | Figures | Seed | Took | Held |\n|---|---|---|---|---|'
const PAGE = /(\| Claim \|.*\n\|-.*\n)((?:\|.*\n)*)/

function rowOf(test: TestCase): { readonly line: string; readonly held: boolean }[] {
  const { proof } = test.meta()
  if (proof === undefined) return []
  const held = test.result().state === 'passed'
  const figures = proof.figures.map(({ what, value }) => `${what}: ${value}`).join('; ')
  const took = Math.round((test.diagnostic()?.duration ?? 0) / 1000)
  return [
    {
      line: `| ${proof.claim}${partOf(proof)} | ${figures} | ${proof.seed} | ${took} s | ${held ? 'yes' : '**no**'} |`,
      held,
    },
  ]
}

function partOf({ part }: ProofRecord): string {
  return part === null ? '' : ` (part ${part.number} of ${part.of})`
}

/** One row a claim, or a part of one, in alphabetical order. */
function putRows(page: string, lines: readonly string[]): void {
  const text = readFileSync(page, 'utf8')
  const standing = PAGE.exec(text)?.[2]
  if (standing === undefined) throw new Error(`${page} has no table of claims`)
  const byClaim = new Map(
    [...standing.split('\n').filter(Boolean), ...lines].map((line) => [claimOf(line), line]),
  )
  const rows = [...byClaim.values()].toSorted().map((line) => `${line}\n`)
  writeFileSync(
    page,
    text.replace(PAGE, (_all, head: string) => head + rows.join('')),
  )
}

function claimOf(line: string): string {
  return line.split(' | ', 1)[0] ?? line
}
