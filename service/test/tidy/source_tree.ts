import { globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { parseSync } from 'oxc-parser'

/** A node of the syntax tree (ESTree with TypeScript), as far as the rules look at it. */
export type Node = { readonly type: string; readonly start: number; readonly end: number } & {
  readonly [field: string]: unknown
}

export type Import = {
  readonly specifier: string
  readonly line: number
  /** Path in the repository, or null for a package and for Node itself. */
  readonly target: string | null
}

export type SourceFile = {
  /** From the repository's root, with forward slashes. */
  readonly path: string
  /** A test, a bench, or what only they use: everything in a folder `test`, `testing` or `bench`. */
  readonly isTest: boolean
  readonly imports: readonly Import[]
  /** Other source files that are named in a string: workers and scripts that are started. */
  readonly mentions: readonly string[]
  readonly nodes: readonly Node[]
  lineAt(offset: number): number
}

/** Something that breaks a rule, and where. */
export type Finding = { readonly path: string; readonly line: number; readonly message: string }

export type Rule = (tree: readonly SourceFile[]) => readonly Finding[]

const workspaces: Readonly<Record<string, string>> = {
  '@cambist/devnet': 'devnet/src/index.ts',
  '@cambist/sdk': 'sdk/src/index.ts',
  '@cambist/service': 'service/src/main.ts',
}

/** Every TypeScript file of ours, except what is generated. */
export function readTree(root: string): readonly SourceFile[] {
  return globSync('{service,devnet,sdk}/**/*.{ts,tsx}', {
    cwd: root,
    exclude: (path) =>
      path.split(/[\\/]/).some((part) => ['node_modules', 'dist', '.cambist'].includes(part)),
  })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path !== 'sdk/src/schema.ts')
    .toSorted()
    .map((path) => parseSource(path, readFileSync(posix.join(root, path), 'utf8')))
}

export function parseSource(path: string, text: string): SourceFile {
  const parsed = parseSync(path, text)
  const [error] = parsed.errors
  if (error !== undefined) throw new Error(`${path}: ${error.message}`)
  const nodes = listNodes(parsed.program)
  const starts = [...text.matchAll(/^/gm)].map((match) => match.index)
  const lineAt = (offset: number) => starts.findLastIndex((start) => start <= offset) + 1
  return {
    path,
    isTest: /\.test\.tsx?$|\/(test|testing|bench)\//.test(path),
    imports: findImports(path, nodes, lineAt),
    mentions: findMentions(path, nodes),
    nodes,
    lineAt,
  }
}

function listNodes(root: unknown): readonly Node[] {
  const found: Node[] = []
  const visit = (value: unknown): void => {
    if (isNode(value)) found.push(value)
    else if (!Array.isArray(value)) return
    for (const inner of Object.values(value)) visit(inner)
  }
  visit(root)
  return found
}

export function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
}

/** The name of an identifier, otherwise undefined. */
export function nameOf(value: unknown): string | undefined {
  return isNode(value) && value.type === 'Identifier' && typeof value.name === 'string'
    ? value.name
    : undefined
}

/** The dotted name of `a.b`, otherwise undefined. */
export function memberName(value: unknown): string | undefined {
  if (!isNode(value) || value.type !== 'MemberExpression' || value.computed === true) return undefined
  const [object, property] = [nameOf(value.object), nameOf(value.property)]
  return object === undefined || property === undefined ? undefined : `${object}.${property}`
}

const importTypes = [
  'ImportDeclaration',
  'ExportNamedDeclaration',
  'ExportAllDeclaration',
  'ImportExpression',
  'TSImportType',
]

function findImports(
  path: string,
  nodes: readonly Node[],
  lineAt: (offset: number) => number,
): readonly Import[] {
  return nodes.flatMap((node) => {
    if (!importTypes.includes(node.type)) return []
    const source = isNode(node.source) ? node.source.value : undefined
    if (typeof source !== 'string') return []
    return [{ specifier: source, line: lineAt(node.start), target: resolve(path, source) }]
  })
}

function resolve(path: string, specifier: string): string | null {
  if (specifier.startsWith('.')) return posix.join(posix.dirname(path), specifier)
  return workspaces[specifier] ?? null
}

function findMentions(path: string, nodes: readonly Node[]): readonly string[] {
  return nodes.flatMap((node) =>
    node.type === 'Literal' && typeof node.value === 'string' && /^[\w./-]+\.ts$/.test(node.value)
      ? [posix.join(posix.dirname(path), node.value)]
      : [],
  )
}
