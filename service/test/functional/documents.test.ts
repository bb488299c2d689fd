import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { useTestSandbox } from '../harness/test_sandbox.ts'

/**
 * What: what a newcomer pastes from README.md and docs/api.md into a shell, or into Python where there is one, works.
 * How: the blocks are taken out of the files as they are and run by `sh` beside a real sandbox that mines by itself, in
 * a folder that has nothing but the sandbox's `sandbox.json`, as after `npm start`.
 */
const sandbox = useTestSandbox({ mining: 'lively' })

const root = join(import.meta.dirname, '../../..')

function codeBlocks(document: string, language: string): readonly string[] {
  const text = readFileSync(join(root, document), 'utf8')
  const blocks = [...text.matchAll(/^```(\w*)\n(.*?)^```$/gms)]
  return blocks.flatMap(([, of, block = '']) => (of === language ? [block] : []))
}

/** The one block of a document that signs requests. */
function pastedBlock(document: string): string {
  const signing = codeBlocks(document, 'sh').filter((block) => block.includes('openssl'))
  expect(signing, `${document} has one block with openssl`).toHaveLength(1)
  return signing[0] ?? ''
}

/** Pastes a block into a shell; its output, line by line. Whatever it writes to standard error fails the test. */
async function paste(block: string): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'cambist-pasted-'))
  mkdirSync(join(folder, '.cambist'))
  symlinkSync(join(sandbox().dataDir, 'sandbox.json'), join(folder, '.cambist', 'sandbox.json'))
  try {
    const shell = spawn('sh', ['-c', block], { cwd: folder, timeout: 200_000 })
    const told = { out: '', error: '' }
    shell.stdout.on('data', (chunk) => (told.out += chunk))
    shell.stderr.on('data', (chunk) => (told.error += chunk))
    const status = await new Promise((resolve, reject) => {
      shell.on('error', reject)
      shell.on('close', (code, signal) => resolve(code ?? signal))
    })
    expect({ status, error: told.error }, told.out).toEqual({ status: 0, error: '' })
    return told.out.trim().split('\n')
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('the exchange by hand in README.md ends with the USDT at the destination', async () => {
  const lines = await paste(pastedBlock('README.md'))
  const [orderId = '', paid = '', ...rest] = lines
  expect(JSON.parse(paid)).toEqual({
    success: true,
    data: { tx_hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
  })
  const balance = JSON.parse(rest.at(-1) ?? '').data.balance
  const order = await sandbox().client.getOrder(orderId)
  expect(order.status).toBe('DONE')
  expect(balance).toBe(order.receive_final_amount)
  expect(balance).toBeGreaterThan(3000)
  // Statuses only: no answer was an error.
  expect(
    new Set(rest.slice(0, -1)).difference(new Set(['NEW', 'PENDING', 'EXCHANGE', 'WITHDRAW', 'DONE'])),
  ).toEqual(new Set())
})

test('the curl and openssl example in docs/api.md quotes, creates an order and reads it', async () => {
  const answers = (await paste(pastedBlock('docs/api.md'))).map((line) => JSON.parse(line))
  expect(answers.map(({ success }) => success)).toEqual([true, true, true])
  const [quote, created, read] = answers.map(({ data }) => data)
  expect(created).toMatchObject({
    status: 'NEW',
    receive_amount: quote.to_amount,
    expires_at: quote.expires_at,
  })
  expect(read).toMatchObject({ order_id: created.order_id, status: 'NEW' })
  sandbox().addSecret(created.token)
})

test('two equal orders of that example are two, however fast they follow each other', async () => {
  const block = pastedBlock('docs/api.md').replace(/^signed POST .*\n/m, (line) => line + line)
  const answers = (await paste(block)).map((line) => JSON.parse(line))
  const [, one, other] = answers.map(({ data }) => data)
  expect(other).toMatchObject({ status: 'NEW', deposit_amount: one.deposit_amount })
  expect(other.order_id).not.toBe(one.order_id)
  for (const { token } of [one, other]) sandbox().addSecret(token)
})

const canRunPython = spawnSync('python3', ['-c', '']).status === 0

test.runIf(canRunPython)('the example in Python creates an order and reads it', async () => {
  const example = codeBlocks('docs/api.md', 'python').find((block) => block.includes('X-API-SIGN'))
  const given = 'import json\ngiven = json.load(open(".cambist/sandbox.json"))'
  const names = 'BASE, API_KEY, API_SECRET = (given[name] for name in ("base_url", "api_key", "api_secret"))'
  expect(await paste(`python3 - <<'END'\n${given}\n${names}\n${example}END`)).toEqual(['NEW'])
})
