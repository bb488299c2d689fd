import type { MessagePort } from 'node:worker_threads'
import type { Line } from './line.ts'

type Question = { readonly number: number; readonly name: string; readonly asked: readonly unknown[] }
type Reply = { readonly number: number; readonly value?: unknown; readonly error?: unknown }

/** Answers the questions that come through `port`: one node may be asked from several threads. */
export function serveNode<Node extends object>(node: Node, port: MessagePort): void {
  port.on('message', async ({ number, name, asked }: Question) => {
    try {
      const question = node[name as keyof Node] as (...asked: unknown[]) => unknown
      port.postMessage({ number, value: await question.apply(node, [...asked]) } satisfies Reply)
    } catch (error) {
      port.postMessage({ number, error } satisfies Reply)
    }
  })
}

/** A line to a node that lives in another thread. */
export function threadLine<Node>(port: MessagePort): Line<Node> {
  type Waiting = { resolve(value: unknown): void; reject(error: unknown): void }
  const waiting = new Map<number, Waiting>()
  let questions = 0
  port.on('message', (reply: Reply) => {
    const { resolve, reject } = waiting.get(reply.number) ?? { resolve: () => {}, reject: () => {} }
    waiting.delete(reply.number)
    if (reply.error === undefined) resolve(reply.value)
    else reject(reply.error)
  })
  return (name, ...asked) =>
    new Promise((resolve, reject) => {
      questions += 1
      waiting.set(questions, { resolve: resolve as Waiting['resolve'], reject })
      port.postMessage({ number: questions, name, asked } satisfies Question)
    })
}
