import { expect, test } from 'vitest'
import { readDatabaseConfig } from './admin_config.ts'
import { ConfigError } from './problems.ts'
import { readSandboxConfig } from './sandbox_config.ts'
import { readServeConfig } from './serve_config.ts'

function problemsOf(read: () => unknown): readonly string[] {
  try {
    read()
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map((each) => `${each.variable}: ${each.message}`)
    throw error
  }
  return []
}

const database = 'postgres://cambist:secret@db/cambist'
const node = 'http://user:secret@node:8332'
const watcher = (env: Record<string, string>) =>
  problemsOf(() => readServeConfig({ DATABASE_URL: database, CAMBIST_BTC_URL: node, ...env }, 'watcher'))
const everywhere = (DATABASE_URL: string) => [
  ...watcher({ DATABASE_URL }),
  ...problemsOf(() => readDatabaseConfig({ DATABASE_URL })),
  ...problemsOf(() => readSandboxConfig({ DATABASE_URL })),
]

test('what is blank around a value is no part of it: the database would be one of that name, on a host called base', () => {
  for (const padded of [` ${database}`, `${database} `, `${database}\n`, `\t${database}`]) {
    expect(readDatabaseConfig({ DATABASE_URL: padded }).databaseUrl, JSON.stringify(padded)).toBe(database)
    expect(readSandboxConfig({ DATABASE_URL: padded }).databaseUrl).toBe(database)
    expect(everywhere(padded)).toEqual([])
  }
  expect(readSandboxConfig({ DATABASE_URL: ' ', PORT: ' 8081\n' })).toMatchObject({
    databaseUrl: null,
    port: 8_081,
  })
})

test('an address begins as it is told to, slashes and all', () => {
  for (const short of ['postgres:cambist', 'postgres:/cambist', 'postgresql:cambist'])
    expect(everywhere(short), short).toEqual(
      Array.from(
        { length: 3 },
        () => 'DATABASE_URL: must be a URL that starts with postgres:// or postgresql://',
      ),
    )
})

test.each(['12/secret', 'pa/secret', '12?secret', 'pa?secret', 'pa/se@cret'])(
  'a / or ? in a password, which would make its beginning the host, is told as what it is: %s',
  (password) => {
    const rule =
      'has a / or ? before its first @, where host and port end; in a user or password write them as %2F and %3F, and an @ behind the host as %40'
    const problems = everywhere(`postgres://cambist:${password}@db/cambist`)
    expect(problems).toEqual(Array.from({ length: 3 }, () => `DATABASE_URL: ${rule}`))
    expect(watcher({ CAMBIST_BTC_URL: `http://user:${password}@node:8332` })).toEqual([
      `CAMBIST_BTC_URL: ${rule}`,
    ])
    const escaped = encodeURIComponent(password)
    expect(watcher({ CAMBIST_BTC_URL: `http://user:${escaped}@node:8332/a@b?c@d` })).toEqual([])
  },
)

test('an address that is none is told so, and not that it begins otherwise', () => {
  for (const url of ['http://user:secret@node:99999', 'http://user:se\\cret@node', 'http://'])
    expect(watcher({ CAMBIST_BTC_URL: url }), url).toEqual([
      'CAMBIST_BTC_URL: cannot be read as a URL; look at its host and port',
    ])
})

test('a # in the password of the database, which would make it another host, is refused', () => {
  const problems = everywhere('postgres://cambist:12#secret@db/cambist')
  expect(problems).toHaveLength(3)
  for (const problem of problems) expect(problem).toMatch(/^DATABASE_URL: has a #.*%23/)
  expect(problems.join()).not.toContain('secret')
})

test('a password of the database with a sign that a URL has another use for is told as that', () => {
  const cases: [string, RegExp][] = [
    ['postgres://cambist:ab/secret@db/cambist', /has a \/ or \? .*%2F/],
    ['postgres://cambist:ab?secret@db/cambist', /has a \/ or \? .*%3F/],
    // One byte of UTF-8 alone: what reads it later says no more than that something is malformed.
    ['postgres://cambist:ab%E4secret@db/cambist', /: has a % .*%25/],
  ]
  for (const [url, told] of cases) {
    const problems = everywhere(url)
    expect(problems).toHaveLength(3)
    for (const problem of problems) expect(problem).toMatch(told)
    expect(problems.join()).not.toContain('secret')
  }
})

test('an @ behind the host is refused with how to write it, and taken so', () => {
  const told = 'has a / or ? before its first @'
  expect(everywhere('postgres://db/cambist?application_name=a@b').join()).toMatch(
    /has a .* @ behind the host as %40/,
  )
  expect(everywhere('postgres://db/cambist?application_name=a%40b').join()).not.toContain(told)
})
