import type { Finding, Import, Rule, SourceFile } from './source_tree.ts'

/**
 * Who may import whom (ARCHITECTURE.md). Every file of a zone may import the files that match `may`, and packages that
 * match `packages`. The first zone that a path matches is its zone.
 */
type Zone = {
  readonly name: string
  readonly files: RegExp
  /** `$1` is what the first group of `files` matched: a connector's own folder. */
  readonly may: readonly string[]
  readonly packages: RegExp
}

const anyPackage = /./
const noPackage = /(?!)/
const nodeOnly = /^node:/
const domain = '^service/src/domain/'
const clock = '^service/src/clock\\.ts$'
const interfaces = '^service/src/(chains/chain|prices/price_source|channels/channel|signer/signer)\\.ts$'

const zones: readonly Zone[] = [
  { name: 'domain', files: /^service\/src\/domain\//, may: [domain], packages: noPackage },
  { name: 'the clock', files: /^service\/src\/clock\.ts$/, may: [domain], packages: noPackage },
  {
    name: 'a connector',
    files: /^service\/src\/((?:chains|prices|channels)\/[^/]+)\//,
    may: [
      domain,
      clock,
      '^service/src/$1/',
      '^service/src/(chains/(chain|listed_tokens|node_line|replies|token_payment)|prices/price_source|channels/channel)\\.ts$',
    ],
    packages: anyPackage,
  },
  {
    name: 'a connectors folder',
    files: /^service\/src\/(chains|prices|channels)\//,
    may: [domain, clock, '^service/src/$1/'],
    packages: nodeOnly,
  },
  {
    name: 'signer',
    files: /^service\/src\/signer\//,
    may: [domain, clock, '^service/src/signer/'],
    packages:
      /^(node:|@scure\/|@noble\/|viem($|\/)|ripple-(address-codec|binary-codec|keypairs)$|@stellar\/stellar-sdk\/base$|tronweb$|@wharfkit\/antelope$|@solana\/kit$|@solana-program\/(system|token)$)/,
  },
  {
    name: 'db',
    files: /^service\/src\/db\//,
    may: [domain, clock, '^service/src/db/', '^service/src/signer/signer\\.ts$'],
    packages: /^(node:|pg$|node-pg-migrate$)/,
  },
  {
    name: 'accounts',
    files: /^service\/src\/accounts\//,
    may: [domain, clock, '^service/src/accounts/', '^service/src/db/'],
    packages: nodeOnly,
  },
  {
    name: 'config',
    files: /^service\/src\/config\//,
    may: [domain, clock, '^service/src/config/', '^service/src/db/'],
    packages: nodeOnly,
  },
  {
    name: 'qr',
    files: /^service\/src\/qr\//,
    may: [domain, '^service/src/qr/'],
    packages: /^(node:|qr($|\/))/,
  },
  {
    name: 'engine',
    files: /^service\/src\/engine\//,
    may: [domain, clock, '^service/src/(engine|db|qr)/', interfaces],
    packages: /^(node:|prom-client$|pino$)/,
  },
  {
    name: 'http',
    files: /^service\/src\/http\//,
    may: [domain, clock, '^service/src/(http|engine|accounts|qr)/'],
    packages: anyPackage,
  },
  // What is left puts things together: main.ts and wiring, cli.ts, the sandbox and the demo.
  {
    name: 'service',
    files: /^service\/src\//,
    may: ['^service/src/', '^(devnet|sdk)/'],
    packages: anyPackage,
  },
  { name: 'devnet', files: /^devnet\//, may: ['^devnet/'], packages: anyPackage },
  { name: 'sdk', files: /^sdk\//, may: ['^sdk/'], packages: nodeOnly },
]

export const followsImportDirections: Rule = (tree) =>
  tree.filter((file) => !file.isTest).flatMap((file) => file.imports.flatMap((each) => judge(file, each)))

function judge(file: SourceFile, { specifier, line, target }: Import): readonly Finding[] {
  const zone = zones.find(({ files }) => files.test(file.path))
  if (zone === undefined) return []
  const own = zone.files.exec(file.path)?.[1] ?? ''
  const isAllowed =
    target === null
      ? zone.packages.test(specifier)
      : zone.may.some((pattern) => new RegExp(pattern.replace('$1', own)).test(target))
  if (isAllowed) return []
  return [{ path: file.path, line, message: `${zone.name} may not import ${target ?? specifier}` }]
}

const keyLibraries = /^(@scure\/bip32|@scure\/bip39|viem\/accounts|@noble\/curves|ripple-keypairs)($|\/)/

/** Whoever can derive or hold a private key is the signer, or plays with worthless money. */
export const keepsKeysInSigner: Rule = (tree) =>
  tree
    .filter((file) => !file.isTest && !/^(service\/src\/signer|devnet)\//.test(file.path))
    .flatMap((file) =>
      file.imports
        .filter(({ specifier }) => keyLibraries.test(specifier))
        .map(({ specifier, line }) => ({
          path: file.path,
          line,
          message: `only the signer may import ${specifier}, which handles private keys`,
        })),
    )

const mayUseDevnet = /^(devnet|service\/src\/(sandbox|commands))\//

export const keepsDevnetOutOfProduction: Rule = (tree) =>
  tree
    .filter((file) => !file.isTest && !mayUseDevnet.test(file.path))
    .flatMap((file) =>
      file.imports
        .filter(({ target }) => target?.startsWith('devnet/'))
        .map(({ line }) => ({
          path: file.path,
          line,
          message: 'only the sandbox and the commands may import devnet',
        })),
    )

/** What a test may do (play with the clock, break things) must not be within reach of production. */
export const keepsTestsOutOfProduction: Rule = (tree) => {
  const tests = new Set(tree.filter((file) => file.isTest).map((file) => file.path))
  return tree
    .filter((file) => !file.isTest)
    .flatMap((file) =>
      file.imports
        .filter(({ target, specifier }) => tests.has(target ?? '') || /^(vitest|fast-check)$/.test(specifier))
        .map(({ specifier, line }) => ({ path: file.path, line, message: `${specifier} is for tests only` })),
    )
}

/** Type-only imports count too: a circle of types is read in circles. */
export const hasNoImportCycles: Rule = (tree) => {
  const files = new Map(tree.map((file) => [file.path, file]))
  const state = new Map<string, 'open' | 'done'>()
  const findings: Finding[] = []
  const visit = (path: string, trail: readonly string[]): void => {
    state.set(path, 'open')
    for (const { target, line } of files.get(path)?.imports ?? []) {
      if (target === null || !files.has(target)) continue
      if (state.get(target) === 'open') {
        const circle = [...trail.slice(trail.indexOf(target)), target]
        findings.push({ path, line, message: `imports in a circle: ${circle.join(' → ')}` })
      } else if (state.get(target) === undefined) visit(target, [...trail, target])
    }
    state.set(path, 'done')
  }
  for (const path of files.keys()) if (state.get(path) === undefined) visit(path, [path])
  return findings
}

const entryPoints =
  /\.test\.tsx?$|\.d\.ts$|^service\/(src\/(cli|main|demo|sandbox\/make_ahead)|bench\/[a-z_]+|test\/(closing_line|fail_at_once|longest_first|harness\/run_folder|proof\/proof_table|simulation\/replay))\.ts$|^(devnet|sdk)\/src\/index\.ts$|^sdk\/build_package\.ts$/

/** Every source file is used by an entry point or by a test, directly or through others. */
export const hasNoDeadFiles: Rule = (tree) => {
  const files = new Map(tree.map((file) => [file.path, file]))
  const alive = new Set<string>()
  const visit = (path: string): void => {
    const file = files.get(path)
    if (file === undefined || alive.has(path)) return
    alive.add(path)
    for (const { target } of file.imports) if (target !== null) visit(target)
    for (const mention of file.mentions) visit(mention)
  }
  for (const file of tree) if (entryPoints.test(file.path)) visit(file.path)
  return tree
    .filter(({ path }) => !alive.has(path))
    .map(({ path }) => ({
      path,
      line: 1,
      message: 'nothing uses this file: no entry point and no test reaches it',
    }))
}
