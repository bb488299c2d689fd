import { spawnSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createSigner } from '@cambist/sdk'
import { describe, expect, test } from 'vitest'
import webhookVectors from '../../src/channels/webhook/webhook_vectors.json' with { type: 'json' }
import { currencies } from '../../src/domain/catalog/currencies.ts'
import vectors from '../../src/http/auth/signature_vectors.json' with { type: 'json' }
import { problems } from '../../src/http/errors.ts'

/**
 * What: the documents say what is there: links lead somewhere, named functions exist, tables are complete, and the
 * signature vectors hold.
 * How: the Markdown files themselves are read; nothing of them is repeated here. The example in Python is run where there is a Python.
 */
const root = join(import.meta.dirname, '../../..')
const documents = globSync('{*.md,docs/**/*.md,{service,devnet,sdk}/*.md}', { cwd: root }).toSorted()
const read = (path: string) => readFileSync(join(root, path), 'utf8')

type Link = { readonly text: string; readonly file: string; readonly anchor: string }

/** Links to our own files; what stands in code is no link. */
function localLinks(path: string): readonly Link[] {
  return [...withoutCodeBlocks(read(path)).matchAll(/\[([^\]]+)\]\(([^)\s]+)\)/g)].flatMap(
    ([, text = '', target = '']) => {
      if (/^[a-z]+:/.test(target)) return []
      const [file = '', anchor = ''] = target.split('#')
      return [{ text, anchor, file: file === '' ? path : join(dirname(path), file) }]
    },
  )
}

function withoutCodeBlocks(markdown: string): string {
  return markdown.replaceAll(/^ *```.*?^ *```$/gms, '')
}

/** As GitHub makes them out of headings. */
function anchorsOf(path: string): readonly string[] {
  return [...withoutCodeBlocks(read(path)).matchAll(/^#{1,6} +(.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

test('there are the documents that a newcomer looks for', () => {
  expect(documents).toEqual(
    expect.arrayContaining([
      'ARCHITECTURE.md',
      'CHANGELOG.md',
      'CONTRIBUTING.md',
      'README.md',
      'docs/api.md',
    ]),
  )
})

describe.each(documents)('%s', (path) => {
  test('every link leads to a file or heading that is there', () => {
    const dead = localLinks(path).filter(({ file, anchor }) => {
      if (!existsSync(join(root, file))) return true
      return anchor !== '' && !(file.endsWith('.md') && anchorsOf(file).includes(anchor))
    })
    expect(dead).toEqual([])
  })

  test('a link that is named after something in a source file leads to where it is', () => {
    const wrong = localLinks(path).filter(({ text, file }) => {
      const [, name] = /^`([A-Za-z]\w*)(?:\(\))?`$/.exec(text) ?? []
      return name !== undefined && file.endsWith('.ts') && !new RegExp(`\\b${name}\\b`).test(read(file))
    })
    expect(wrong).toEqual([])
  })
})

test('every decision is in the list of decisions', () => {
  const folder = 'docs/decisions'
  const files = globSync('[0-9]*.md', { cwd: join(root, folder) }).map((name) => join(folder, name))
  expect(files.length).toBeGreaterThan(10)
  expect(localLinks(join(folder, 'README.md')).map(({ file }) => file)).toEqual(files.toSorted())
})

test('the architecture names every table of the database', () => {
  const sql = globSync('service/src/db/migrations/*.sql', { cwd: root }).map(read).join('\n')
  const created = [...sql.matchAll(/^CREATE TABLE ([\w.]+)/gm)].map(([, name]) => name)
  expect(created.length).toBeGreaterThan(20)
  const page = read('ARCHITECTURE.md')
  expect(created.filter((name) => !page.includes(`| \`${name}\` |`))).toEqual([])
})

test('the interface lists every error code with its status, and no other', () => {
  const rows = [...read('docs/api.md').matchAll(/^\| (\d{3}) \| `([A-Z_]+)` \|/gm)]
  const listed = rows.map(([, status, code]) => [code, Number(status)])
  const known = Object.entries(problems).map(([code, { status }]) => [code, status])
  expect(listed.toSorted()).toEqual(known.toSorted())
})

test('every example that signs a request sends an Idempotency-Key', () => {
  const blocks = ['README.md', 'docs/api.md'].flatMap(
    (path) => read(path).match(/^```\w+\n.*?^```$/gms) ?? [],
  )
  const signing = blocks.filter((block) => /X-API-SIGN["':]/.test(block))
  expect(signing).toHaveLength(5)
  expect(signing.filter((block) => !block.includes('Idempotency-Key'))).toEqual([])
})

test('the interface says of every currency what is dust', () => {
  const leasts = Object.entries(currencies).map(([code, { minCredit }]) => `${minCredit} ${code}`)
  const listed = leasts.join(', ').replace(/, ([^,]+)$/, ' or $1')
  expect(read('docs/api.md')).toContain(`A deposit is dust below ${listed}.`)
})

describe('the signature vectors of docs/api.md', () => {
  const quoted = [...read('docs/api.md').matchAll(/^```vector\n(.*?)^```$/gms)].map(([, block = '']) =>
    Object.fromEntries(block.split('\n').flatMap(readLine)),
  )

  test('are those that the service is tested with', () => {
    expect(quoted).toEqual(vectors)
  })

  test.each(quoted)(
    '$name',
    async ({ secret = '', signature, timestamp = '', method = '', target = '', body = '' }) => {
      const text = `${timestamp}\n${method}\n${target}\n${body}`
      expect(createHmac('sha256', secret).update(text).digest('hex')).toBe(signature)
      expect(await createSigner(secret)({ timestamp, method, target, body })).toBe(signature)
    },
  )
})

/** Exits otherwise than with 0 on an exception that the example does not announce. */
const verifyEach = `
import json, sys
def outcome(headers, body, secret, now):
    try:
        verify_webhook(headers, body.encode(), secret, now)
        return "verified"
    except ValueError:
        return "refused"
print(json.dumps([outcome(**each) for each in json.load(sys.stdin)]))
`
const canRunExample = spawnSync('python3', ['-c', 'str.removeprefix']).status === 0

test.runIf(canRunExample)(
  'the webhook example in Python verifies the vectors and refuses all else as it says',
  () => {
    const blocks = [...read('docs/api.md').matchAll(/^```python\n(.*?)^```$/gms)].map(
      ([, block = '']) => block,
    )
    const example = blocks.find((block) => block.includes('def verify_webhook(')) ?? expect.unreachable()
    const right = webhookVectors.flatMap(({ secrets, id, timestamp, signature, body }) =>
      secrets.map((secret) => ({
        headers: { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature },
        body,
        secret,
        // null: now, when every vector is too old.
        now: Number(timestamp) as number | null,
      })),
    )
    const wrong = right.flatMap((given) => [
      { ...given, body: `${given.body} ` },
      { ...given, secret: 'whsec_BAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE' },
      { ...given, now: null },
      { ...given, now: null, headers: { ...given.headers, 'webhook-timestamp': '1'.repeat(400) } },
      { ...given, headers: { ...given.headers, 'webhook-signature': 'v1,é' } },
      ...Object.keys(given.headers).map((name) => ({
        ...given,
        headers: { ...given.headers, [name]: undefined },
      })),
    ])
    const input = JSON.stringify([...right, ...wrong])
    const { stdout, stderr } = spawnSync('python3', ['-c', example + verifyEach], { encoding: 'utf8', input })
    expect(stderr).toBe('')
    expect(JSON.parse(stdout)).toEqual([...right.map(() => 'verified'), ...wrong.map(() => 'refused')])
  },
)

/** `name: value`; the value is everything after the first colon and space, and may be empty. */
function readLine(line: string): readonly (readonly [string, string])[] {
  const [, name, value = ''] = /^([a-z]+):(?: (.*))?$/.exec(line) ?? []
  return name === undefined ? [] : [[name, value]]
}
