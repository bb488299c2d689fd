import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Sandbox } from '../src/sandbox/start_sandbox.ts'

/** A server under test, in a process of its own, so that its processor time is its own. */
export type ServerProcess = {
  /** `http://127.0.0.1:port`. */
  readonly url: string
  readonly pid: number
  cpuMicroseconds(): Promise<number>
  stop(): Promise<void>
}

/** `file` lies beside this one and calls `answerBench` as soon as it listens. */
export async function startServerProcess(
  file: string,
  args: readonly string[] = [],
  execArgv: readonly string[] = process.execArgv,
): Promise<ServerProcess> {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), args, {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    execArgv: [...execArgv],
  })
  const { url } = await nextMessage<{ url: string }>(child)
  return {
    url,
    pid: child.pid ?? 0,
    cpuMicroseconds: async () => {
      const answer = nextMessage<{ cpu: number }>(child)
      child.send('cpu')
      return (await answer).cpu
    },
    stop: () =>
      new Promise((resolve) => {
        child.once('exit', () => resolve())
        child.send('stop')
      }),
  }
}

export function apiServerOf({ databaseUrl, devnet }: Sandbox): Promise<ServerProcess> {
  return startServerProcess('api_server.ts', [databaseUrl, JSON.stringify(devnet.networks)])
}

function nextMessage<Message>(child: ChildProcess): Promise<Message> {
  return new Promise((resolve, reject) => {
    const died = (code: number | null) => reject(new Error(`the server under test ended with ${code}`))
    child.once('exit', died)
    child.once('message', (message) => {
      child.off('exit', died)
      resolve(message as Message)
    })
  })
}

/** To be called in the process of the server under test, once it listens. */
export function answerBench(url: string): void {
  process.on('message', (message) => {
    if (message === 'stop') process.exit(0)
    const { user, system } = process.cpuUsage()
    process.send?.({ cpu: user + system })
  })
  // Whoever measures is gone: nobody else would end this process.
  process.on('disconnect', () => process.exit(0))
  process.send?.({ url })
}
