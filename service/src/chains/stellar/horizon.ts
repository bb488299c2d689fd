import { NodeTrouble } from '../chain.ts'
import { askJson, type NodeLine, openLine, type Question } from '../node_line.ts'
import { type Fields, isObject } from '../replies.ts'

/** Nobody can say what Horizon did with the request: no answer, half an answer, or not an answer of a Horizon. */
export class NoAnswer extends NodeTrouble {
  constructor(what: string, reason: string) {
    super(`Horizon gave no answer to ${what}: ${reason}`)
    this.name = 'NoAnswer'
  }
}

export type Horizon = {
  /** What is at `path`, or null when Horizon itself says that there is no such thing. Rejects with NoAnswer. */
  get(path: string): Promise<Fields | null>
  /** Hands on an envelope in base64, and tells at once what became of it; whatever the status, if it is JSON. */
  submit(envelope: string): Promise<Fields>
}

const NOT_FOUND = 'https://stellar.org/horizon-errors/not_found'

/** The few resources that are needed, over HTTP. */
export function connect(horizonUrl: string, timeoutMs: number): Horizon {
  const line = openLine(horizonUrl, timeoutMs)
  return {
    get: async (path) => {
      const { status, body } = await ask(line, path, { method: 'GET', path })
      if (status === 200) return body
      // A gateway may say 404 as well, and means itself.
      if (status === 404 && body.type === NOT_FOUND) return null
      throw new NoAnswer(path, `HTTP ${status} (${String(body.title ?? 'without a title')})`)
    },
    submit: async (envelope) => {
      const { body } = await ask(line, 'transactions_async', {
        method: 'POST',
        path: '/transactions_async',
        body: new URLSearchParams({ tx: envelope }).toString(),
        contentType: 'application/x-www-form-urlencoded;charset=UTF-8',
      })
      return body
    },
  }
}

async function ask(
  line: NodeLine,
  what: string,
  question: Question,
): Promise<{ readonly status: number; readonly body: Fields }> {
  const asked = await askJson(line, question)
  if (!asked.ok) throw new NoAnswer(what, asked.rejection)
  const { status, body } = asked.value
  if (!isObject(body)) throw new NoAnswer(what, 'the reply is no object')
  return { status, body }
}
