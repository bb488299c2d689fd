import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  keepsMoneyOutOfFloats,
  readsEnvironmentInConfig,
  takesPathsFromFolders,
  takesTimeFromClock,
} from './calls.ts'
import { exceptions } from './exceptions.ts'
import {
  followsImportDirections,
  hasNoDeadFiles,
  hasNoImportCycles,
  keepsDevnetOutOfProduction,
  keepsKeysInSigner,
  keepsTestsOutOfProduction,
} from './imports.ts'
import { keepsFunctionsShort, namesFilesInSnakeCase, usesTellingNames } from './shape.ts'
import { parseSource, type Rule, readTree } from './source_tree.ts'

/**
 * What: the rules of the house hold in every file, and each rule can fail.
 * How: the whole tree is parsed once; every rule is first tried on small samples, bad and good.
 */
type Sample = Readonly<Record<string, string>>

type House = {
  readonly name: string
  readonly rule: Rule
  /** Each breaks the rule exactly once, at the line of the word BAD, or at line 1. */
  readonly bad: readonly Sample[]
  readonly good: readonly Sample[]
}

const importing = (specifier: string) => `// a comment\nimport { x } from '${specifier}' // BAD\nx()`
const lines = (count: number) => Array.from({ length: count }, () => '  x()').join('\n')

const house: readonly House[] = [
  {
    name: 'imports go in the direction of the design',
    rule: followsImportDirections,
    bad: [
      { 'service/src/domain/a.ts': importing('../engine/apply.ts') },
      { 'service/src/domain/a.ts': importing('node:crypto') },
      { 'service/src/domain/a.ts': importing('../clock.ts') },
      { 'service/src/engine/a.ts': importing('../http/server.ts') },
      { 'service/src/engine/a.ts': importing('../chains/bitcoin/index.ts') },
      { 'service/src/engine/a.ts': 'type A = import("../chains/bitcoin/a.ts").A // BAD' },
      { 'service/src/engine/a.ts': '\nconst a = await import("../chains/index.ts") // BAD' },
      { 'service/src/engine/a.ts': '\nexport * from "../chains/index.ts" // BAD' },
      { 'service/src/chains/evm/a.ts': importing('../bitcoin/rpc.ts') },
      { 'service/src/chains/evm/a.ts': importing('../index.ts') },
      { 'service/src/prices/ccxt/a.ts': importing('../../db/database.ts') },
      { 'service/src/signer/a.ts': importing('../engine/seal.ts') },
      { 'service/src/signer/a.ts': importing('pg') },
      { 'service/src/db/a.ts': importing('../engine/apply.ts') },
      { 'service/src/accounts/a.ts': importing('../http/errors.ts') },
      { 'service/src/config/a.ts': importing('../accounts/keys.ts') },
      { 'service/src/http/a.ts': importing('../db/database.ts') },
      { 'service/src/http/a.ts': importing('../main.ts') },
      { 'service/src/http/a.ts': importing('../wiring/roles.ts') },
      { 'sdk/src/a.ts': importing('../../service/src/domain/time.ts') },
      { 'sdk/src/a.ts': importing('viem') },
      { 'devnet/src/a.ts': importing('@cambist/sdk') },
      { 'service/src/db/a.ts': importing('kysely') },
      { 'service/src/http/a.ts': importing('../chains/chain.ts') },
    ],
    good: [
      { 'service/src/main.ts': importing('./http/server.ts') },
      { 'service/src/http/account/a.ts': importing('../../engine/desk.ts') },
      { 'service/src/engine/a.ts': importing('../chains/chain.ts') },
      { 'service/src/chains/evm/a.ts': importing('./rpc.ts') },
      { 'service/src/chains/evm/a.ts': importing('../chain.ts') },
      { 'service/src/signer/a.ts': importing('@scure/bip32') },
      { 'service/src/domain/a.test.ts': importing('fast-check') },
      {
        'service/src/domain/a.ts':
          '// import "../engine/apply.ts"\nexport const a = `import "../engine/apply.ts"`',
      },
    ],
  },
  {
    name: 'only the signer imports key libraries',
    rule: keepsKeysInSigner,
    bad: [
      '@scure/bip32',
      '@scure/bip39/wordlists/english.js',
      'viem/accounts',
      '@noble/curves/secp256k1.js',
    ].map((library) => ({ 'service/src/chains/evm/a.ts': importing(library) })),
    good: [
      { 'service/src/signer/a.ts': importing('viem/accounts') },
      { 'devnet/src/a.ts': importing('viem/accounts') },
      { 'service/src/chains/evm/a.test.ts': importing('viem/accounts') },
      { 'service/src/chains/evm/a.ts': importing('viem') },
    ],
  },
  {
    name: 'devnet stays out of production code',
    rule: keepsDevnetOutOfProduction,
    bad: [
      { 'service/src/engine/a.ts': importing('@cambist/devnet') },
      { 'service/src/http/sandbox/a.ts': importing('../../../../devnet/src/miner.ts') },
      { 'service/src/main.ts': importing('@cambist/devnet') },
    ],
    good: [
      { 'service/src/sandbox/world.ts': importing('@cambist/devnet') },
      { 'service/src/commands/a.ts': importing('@cambist/devnet') },
      { 'service/test/harness/a.ts': importing('@cambist/devnet') },
    ],
  },
  {
    name: 'tests stay out of production code',
    rule: keepsTestsOutOfProduction,
    bad: [
      { 'sdk/src/testing/b.ts': '', 'sdk/src/a.ts': importing('./testing/b.ts') },
      { 'sdk/src/b.test.ts': '', 'sdk/src/a.ts': importing('./b.test.ts') },
      { 'sdk/src/a.ts': importing('vitest') },
    ],
    good: [{ 'sdk/src/testing/b.ts': '', 'sdk/src/a.test.ts': importing('./testing/b.ts') }],
  },
  {
    name: 'imports have no cycles',
    rule: hasNoImportCycles,
    bad: [
      { 'sdk/src/a.ts': 'import "./b.ts"', 'sdk/src/b.ts': importing('./a.ts') },
      { 'sdk/src/a.ts': 'import "./b.ts"', 'sdk/src/b.ts': '\nimport type { A } from "./a.ts" // BAD' },
      { 'sdk/src/a.ts': 'import "./a.ts" // BAD' },
      {
        'sdk/src/a.ts': 'import "./b.ts"',
        'sdk/src/b.ts': 'import "./c.ts"',
        'sdk/src/c.ts': importing('./b.ts'),
      },
    ],
    good: [
      {
        'sdk/src/a.ts': 'import "./b.ts"\nimport "./c.ts"',
        'sdk/src/b.ts': 'import "./c.ts"',
        'sdk/src/c.ts': 'export {}',
      },
    ],
  },
  {
    name: 'no file is dead',
    rule: hasNoDeadFiles,
    bad: [
      { 'service/src/cli.ts': 'import "./main.ts"', 'service/src/main.ts': '', 'service/src/dead.ts': '' },
      { 'service/src/dead.ts': '// import "./dead.ts"' },
      { 'service/test/harness/dead.ts': '' },
    ],
    good: [
      { 'service/src/cli.ts': 'import "./used.ts"', 'service/src/used.ts': '' },
      { 'service/src/a.test.ts': 'import "./used.ts"', 'service/src/used.ts': '' },
      {
        'service/src/cli.ts': 'new Worker(new URL("./work.ts", import.meta.url))',
        'service/src/work.ts': '',
      },
    ],
  },
  {
    name: 'only config reads the environment',
    rule: readsEnvironmentInConfig,
    bad: [
      { 'service/src/engine/a.ts': '\nconst a = process.env.HOME // BAD' },
      { 'service/src/engine/a.ts': '\nconst { HOME } = process.env // BAD' },
      { 'service/src/engine/a.ts': '\nimport { env } from "node:process" // BAD' },
    ],
    good: [
      { 'service/src/config/a.ts': 'const a = process.env' },
      { 'service/src/cli.ts': 'run(process.env)' },
      { 'service/src/engine/a.ts': 'const a = process.pid // process.env' },
      { 'devnet/src/a.ts': 'const a = process.env.PATH' },
    ],
  },
  {
    name: 'time comes from the clock',
    rule: takesTimeFromClock,
    bad: [
      'Date.now()',
      'f(Date.now)',
      'new Date()',
      'new Date',
      'Date()',
      'setTimeout(f, 1)',
      'globalThis.setTimeout(f, 1)',
      'setInterval(f, 1)',
      'setImmediate(f)',
      'performance.now()',
      'process.hrtime.bigint()',
      'import { setTimeout } from "node:timers/promises"',
    ].map((code) => ({ 'service/src/engine/a.ts': `\n${code} // BAD` })),
    good: [
      { 'service/src/clock.ts': 'Date.now()' },
      { 'service/src/engine/a.ts': 'new Date(atMs).toISOString(); AbortSignal.timeout(5); clock.sleep(1)' },
      { 'service/src/engine/a.test.ts': 'Date.now()' },
      { 'sdk/src/a.ts': 'Date.now()' },
    ],
  },
  {
    name: 'money stays out of floating point',
    rule: keepsMoneyOutOfFloats,
    bad: ['Number(units)', 'parseFloat(text)', 'Number.parseFloat(text)', 'f(+text)'].flatMap((code) => [
      { 'service/src/domain/a.ts': `\n${code} // BAD` },
      { 'service/src/chains/evm/a.ts': `\n${code} // BAD` },
    ]),
    good: [
      { 'service/src/domain/a.ts': 'BigInt(text); Number.isSafeInteger(n); a + b' },
      { 'service/src/config/a.ts': 'Number(text)' },
    ],
  },
  {
    name: 'no path is the pathname of a URL',
    rule: takesPathsFromFolders,
    bad: [
      'const a = new URL("./b", import.meta.url).pathname',
      'f(new URL(name, import.meta.url).pathname)',
    ].flatMap((code) => [
      { 'service/src/db/a.ts': `\n${code} // BAD` },
      { 'devnet/test/a.test.ts': `\n${code} // BAD` },
    ]),
    good: [
      {
        'service/src/db/a.ts':
          'join(import.meta.dirname, "b"); fileURLToPath(new URL("b", import.meta.url)); new URL("b", import.meta.url).href',
      },
      { 'sdk/src/a.ts': 'sign(new URL(request.url).pathname, new URL(path, origin).pathname)' },
    ],
  },
  {
    name: 'functions fit on a screen',
    rule: keepsFunctionsShort,
    bad: [
      { 'sdk/src/a.ts': `function f() { // BAD\n${lines(69)}\n}` },
      { 'sdk/src/a.test.ts': `\ntest('a', () => { // BAD\n${lines(69)}\n})` },
      { 'sdk/src/a.ts': `\nconst o = { f() { // BAD\n${lines(69)}\n} }` },
    ],
    good: [
      { 'sdk/src/a.ts': `function f() {\n${lines(68)}\n}` },
      { 'sdk/src/a.test.ts': `describe('a', () => {\n${lines(200)}\n})` },
      { 'sdk/src/a.test.ts': `describe.each(list)('a', () => {\n${lines(200)}\n})` },
    ],
  },
  {
    name: 'files are named in snake_case',
    rule: namesFilesInSnakeCase,
    bad: [{ 'sdk/src/priceBook.ts': '' }, { 'sdk/src/price-book.ts': '' }, { 'sdk/src/priceBooks/a.ts': '' }],
    good: [{ 'sdk/src/price_book.ts': '' }, { 'sdk/src/price_book.test.ts': '' }, { 'sdk/src/a.d.ts': '' }],
  },
  {
    name: 'names say something',
    rule: usesTellingNames,
    bad: [
      { 'sdk/src/utils.ts': '' },
      { 'sdk/src/common/a.ts': '' },
      { 'sdk/src/a.ts': '\nclass OrderManager {} // BAD' },
      { 'sdk/src/a.ts': '\nexport type OrderService = {} // BAD' },
      { 'sdk/src/a.ts': '\nexport function orderHelper() {} // BAD' },
    ],
    good: [{ 'service/src/a.ts': 'class Orders {}; type Service = {}; function startService() {}' }],
  },
]

const parseSample = (sample: Sample) => Object.entries(sample).map(([path, text]) => parseSource(path, text))

/** `path:line` of the word BAD in a sample; otherwise of its last file. */
function expectedPlace(sample: Sample): string {
  const bad = Object.entries(sample).find(([, text]) => text.includes('BAD'))
  if (bad === undefined) return `${Object.keys(sample).at(-1)}:1`
  return `${bad[0]}:${bad[1].split('\n').findIndex((line) => line.includes('BAD')) + 1}`
}

describe.each(house)('$name', ({ name, rule, bad, good }) => {
  test.each(
    bad.map((sample) => ({ place: expectedPlace(sample), sample, code: Object.values(sample).join('\n') })),
  )('a breach is found at $place: $code', ({ sample, place }) => {
    expect(rule(parseSample(sample)).map(({ path, line }) => `${path}:${line}`)).toEqual([place])
  })

  test('what is allowed is not found', () => {
    expect(good.length).toBeGreaterThan(0)
    for (const sample of good) expect(rule(parseSample(sample)), JSON.stringify(sample)).toEqual([])
  })

  test('it holds in the whole tree', () => {
    const allowed = exceptions[name] ?? []
    const findings = rule(tree)
    const breaches = findings.filter(({ path }) => !allowed.some((each) => each.path === path))
    expect(breaches.map(({ path, line, message }) => `${path}:${line} ${message}`)).toEqual([])
    const unused = allowed.filter((each) => !findings.some(({ path }) => path === each.path))
    expect(unused, 'exceptions that are not needed any more').toEqual([])
  })
})

const tree = readTree(join(import.meta.dirname, '../../..'))

test('the tree is there', () => {
  const paths = tree.map(({ path }) => path)
  expect(paths).toContain('service/src/clock.ts')
  expect(paths).toContain('service/src/domain/money/amount.ts')
  expect(paths).toContain('sdk/src/client.ts')
  expect(tree.find(({ path }) => path === 'sdk/src/client.ts')?.imports.length).toBeGreaterThan(3)
})

test('every exception belongs to a rule and says why', () => {
  const names = house.map(({ name }) => name)
  for (const [rule, places] of Object.entries(exceptions)) {
    expect(names).toContain(rule)
    for (const { reason } of places) expect(reason.length).toBeGreaterThan(20)
  }
})
