import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { useLinkedLibraries } from '../../../src/sandbox/linked_libraries.ts'
import { misfitOf, type Patch, SOURCE } from './patches.ts'
import { points } from './points.ts'
import { commitWithPoints, type Fate, meet } from './reach.ts'

/** The third argument of the process, which is started with `--import` of this file. */
export type Preload = { readonly fate: Fate; readonly patches: readonly Patch[] }

const MARK = '?with-points'

// A process that is started a hundred times has to start quickly.
useLinkedLibraries()
const { fate, patches } = JSON.parse(process.argv[3] ?? '{}') as Preload
meet(fate)
checkPatches()
putPointsIntoModules()
putPointsAroundCommits()

function checkPatches(): void {
  const misfit = patches.map(misfitOf).find((found) => found !== null)
  if (misfit !== undefined) throw new Error(misfit)
}

/**
 * Whoever imports a module with points gets one that exports the same, with points around the functions that have some.
 * Production code knows nothing of it.
 */
function putPointsIntoModules(): void {
  const ours = points.filter(({ role }) => role === fate.role).flatMap(({ places }) => places)
  registerHooks({
    resolve: (specifier, context, next) => {
      const resolved = next(specifier, context)
      const isPointed = ours.some(({ file }) => resolved.url === SOURCE + file)
      if (!isPointed || context.parentURL === resolved.url + MARK) return resolved
      return { ...resolved, url: resolved.url + MARK }
    },
    load: (url, context, next) => {
      if (url.endsWith(MARK)) {
        const real = url.slice(0, -MARK.length)
        const names = ours.filter(({ file }) => SOURCE + file === real).map(({ name }) => name)
        return { format: 'module', shortCircuit: true, source: wrapperOf(real, new Set(names)) }
      }
      const own = patches.filter(({ file }) => url === SOURCE + file)
      if (own.length === 0) return next(url, context)
      const source = own.reduce(
        (text, { find, replace }) => text.replace(find, () => replace),
        readFileSync(fileURLToPath(url), 'utf8'),
      )
      return { format: 'module-typescript', shortCircuit: true, source }
    },
  })
}

function wrapperOf(real: string, names: ReadonlySet<string>): string {
  const file = JSON.stringify(real.slice(SOURCE.length))
  const reach = JSON.stringify(new URL('./reach.ts', import.meta.url).href)
  const wrapped = [...names].map(
    (name) => `export const ${name} = withPoints(${file}, '${name}', real.${name})`,
  )
  return [
    `import { withPoints } from ${reach}`,
    `import * as real from ${JSON.stringify(real)}`,
    `export * from ${JSON.stringify(real)}`,
    ...wrapped,
  ].join('\n')
}

type Client = { isInTransaction?: boolean }
type Query = (this: Client, ...args: unknown[]) => unknown

function putPointsAroundCommits(): void {
  const { prototype } = pg.Client as unknown as { prototype: { query: Query } }
  const { query } = prototype
  prototype.query = function (...args) {
    const send = (...given: unknown[]) => query.apply(this, given)
    return isCommit(this, textOf(args[0])) ? commitWithPoints(send, args) : send(...args)
  }
}

function textOf(statement: unknown): string {
  return typeof statement === 'string' ? statement : (statement as { text: string }).text
}

function isCommit(client: Client, text: string): boolean {
  const isWithin = client.isInTransaction === true
  if (/^BEGIN( |$)/.test(text)) client.isInTransaction = true
  if (text === 'COMMIT' || text === 'ROLLBACK') client.isInTransaction = false
  return text === 'COMMIT' || (!isWithin && /\b(INSERT|UPDATE|DELETE)\b/.test(text))
}
