import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import type { Reporter, TestCase, TestModule } from 'vitest/node'
import { mergeRuns, overviewOf, type ProofRun, showRuns } from './proof_page.ts'

/**
 * Ends `npm run prove` with a table of what was shown. A claim that held takes its place in the page and in the file
 * that it is made of, so that the long proofs may also be run one at a time; one that did not hold is printed and never
 * written.
 */
export default class ProofTable implements Reporter {
  readonly #page: string
  readonly #runs: string
  /** As the run begins: who goes on working meanwhile changes what it did not see. */
  readonly #code = codeNow()

  constructor(files: { readonly page: string; readonly runs: string }) {
    this.#page = files.page
    this.#runs = files.runs
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    const runs = tests.flatMap((test) => runOf(test, this.#code))
    const held = runs.filter(({ isHeld }) => isHeld).map(({ run }) => run)
    for (const { run, isHeld } of runs) {
      const figures = run.figures.map(({ what, value }) => `  ${what}: ${value}`)
      console.log(`\n${isHeld ? 'held' : 'DID NOT HOLD'}: ${run.claim}\n${figures.join('\n')}`)
    }
    if (held.length === 0) return
    console.log(`\n${overviewOf(held)}`)
    const standing = JSON.parse(readFileSync(this.#runs, 'utf8')) as readonly ProofRun[]
    const merged = mergeRuns(standing, held)
    writeFileSync(this.#runs, `${JSON.stringify(merged, null, 2)}\n`)
    writeFileSync(this.#page, showRuns(readFileSync(this.#page, 'utf8'), merged))
  }
}

function runOf(test: TestCase, code: string): { readonly run: ProofRun; readonly isHeld: boolean }[] {
  const { proof } = test.meta()
  if (proof === undefined) return []
  const { claim, part, seed, figures } = proof
  const tookSeconds = Math.round((test.diagnostic()?.duration ?? 0) / 1000)
  return [
    { run: { claim, part, seed, code, tookSeconds, figures }, isHeld: test.result().state === 'passed' },
  ]
}

function codeNow(): string {
  const git = (...words: readonly string[]) => execFileSync('git', words, { encoding: 'utf8' }).trim()
  const changed = git('status', '--porcelain', '--untracked-files=no', '--', 'service', 'devnet', 'sdk')
  return `${git('rev-parse', '--short=7', 'HEAD')}${changed === '' ? '' : '+'}`
}
