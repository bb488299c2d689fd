import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { startOnFreePort, stopProcess } from '../src/processes/node_process.ts'
import { makeTemporaryFolder } from './harness.ts'

/**
 * What: a program starts although somebody takes the port that was found free for it.
 * How: the port is taken at the moment when the program's command is asked for.
 */
const folder = makeTemporaryFolder()
const thieves: Server[] = []

afterAll(() => {
  for (const thief of thieves) thief.close()
  folder.remove()
})

/** Of a port that somebody else has it says `words`. One that is robbed waits for its thief, who may be slower. */
const listener = (port: number, words: string, isRobbed: boolean) => ({
  command: [
    process.execPath,
    '-e',
    `const listen = () => require('node:http').createServer((_, to) => to.end()).listen(${port}, '127.0.0.1')
      .on('error', () => { console.error('Error: ${words}'); process.exit(1) })
    const wait = () => require('node:net').connect(${port}, '127.0.0.1').once('connect', listen)
      .on('error', (error) => { if (error.code === 'ECONNREFUSED') setTimeout(wait, 5) })
    ${isRobbed ? 'wait' : 'listen'}()`,
  ],
  logPath: join(folder.path, `${words.replaceAll(' ', '_')}.log`),
})

const isAnswered = async (port: number) => (await fetch(`http://127.0.0.1:${port}`)).ok

test.each([
  'Address already in use (os error 98)',
  'Unable to bind to 127.0.0.1:18444 on this computer.',
  'Unable to start HTTP server. See debug log for details.',
])('another port is taken when the first was lost in between: %s', async (words) => {
  const asked: number[] = []
  const node = await startOnFreePort(
    join(folder.path, `${words.replaceAll(' ', '_')}.json`),
    undefined,
    (port) => {
      asked.push(port)
      const isRobbed = asked.length === 1
      if (isRobbed) thieves.push(createServer((socket) => socket.destroy()).listen(port, '127.0.0.1'))
      return listener(port, words, isRobbed)
    },
    isAnswered,
  )
  expect(asked).toHaveLength(2)
  expect(node.port).toBe(asked[1])
  expect(await isAnswered(node.port)).toBe(true)
  await stopProcess(node, 'SIGKILL')
})

test('a program that ends for another reason is not tried again', async () => {
  let count = 0
  const start = startOnFreePort(
    join(folder.path, 'other.json'),
    undefined,
    () => {
      count++
      return {
        command: [process.execPath, '-e', 'throw new Error("no disk")'],
        logPath: join(folder.path, 'other.log'),
      }
    },
    isAnswered,
  )
  await expect(start).rejects.toThrow('no disk')
  expect(count).toBe(1)
})
