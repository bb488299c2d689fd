import type { ProofRecord } from './prove.ts'

/** A long form that held, as docs/proof_runs.json keeps it and docs/proof.md shows it. */
export type ProofRun = Omit<ProofRecord, 'size'> & {
  /** The commit that it ran on; `+` behind it: with changes that were not committed. */
  readonly code: string
  readonly tookSeconds: number
}

/**
 * A run takes the place of an earlier one of the same claim; where it was a part, of the same one under the same seed: under
 * another it did other things. In the order of the page.
 */
export function mergeRuns(standing: readonly ProofRun[], made: readonly ProofRun[]): readonly ProofRun[] {
  const byPlace = new Map(
    [...standing, ...made].map((run) => [
      run.part === null ? run.claim : `${run.claim}, ${nameOf(run)}`,
      run,
    ]),
  )
  return [...byPlace.values()].toSorted(
    (one, other) =>
      one.claim.localeCompare(other.claim, 'en') ||
      (one.part?.of ?? 0) - (other.part?.of ?? 0) ||
      one.seed - other.seed ||
      (one.part?.number ?? 0) - (other.part?.number ?? 0),
  )
}

/** The page with these runs in place of those that stood in it. Throws when it has no place for them. */
export function showRuns(page: string, runs: readonly ProofRun[]): string {
  const parts = page.split(MARK)
  if (parts.length !== 3) throw new Error(`the page has to have two lines "${MARK}"`)
  const [before = '', , after = ''] = parts
  return [before, `\n\n${overviewOf(runs)}\n\n${figuresOf(runs)}\n\n`, after].join(MARK)
}

const MARK = '<!-- Between these lines `npm run prove` writes what docs/proof_runs.json holds. -->'

/** A line for each run: which claim, by which seed, on which code, and how long it took. */
export function overviewOf(runs: readonly ProofRun[]): string {
  const rows = runs.map((run) => [sentence(run.claim), nameOf(run), run.code, `${run.tookSeconds} s`])
  return tableOf(['Claim', 'Run', 'Code', 'Took'], rows)
}

/** A table for each claim, with a column for each run of it. */
function figuresOf(runs: readonly ProofRun[]): string {
  const claims = [...new Set(runs.map(({ claim }) => claim))]
  const tables = claims.map((claim) => {
    const own = runs.filter((run) => run.claim === claim)
    const names = [...new Set(own.flatMap(({ figures }) => figures.map(({ what }) => what)))]
    const rows = names.map((what) => [
      what,
      ...own.map(({ figures }) => valuesOf(figures, what).join('; ') || '–'),
    ])
    return `### ${sentence(claim)}\n\n${tableOf(['', ...own.map(nameOf)], rows)}`
  })
  return tables.join('\n\n')
}

/** A figure may be noted several times, as the faults of each line are. */
function valuesOf(figures: ProofRun['figures'], what: string): readonly string[] {
  return figures.filter((figure) => figure.what === what).map(({ value }) => value)
}

function nameOf({ part, seed }: ProofRun): string {
  return part === null ? `seed ${seed}` : `seed ${seed}, part ${part.number} of ${part.of}`
}

function sentence(claim: string): string {
  return claim.charAt(0).toUpperCase() + claim.slice(1)
}

function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => '---'), ...rows]
  return lines.map((cells) => `| ${cells.map(cellOf).join(' | ')} |`).join('\n')
}

function cellOf(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ')
}
