import type { ToldSecret } from '../../../src/accounts/keys.ts'
import type { Answer } from '../../../src/http/testing/answer.ts'
import { type Ended, run } from '../../functional/processes/running_sandbox.ts'
import { openRawLine } from '../../harness/raw_line.ts'
import { bytesOf, type Header, type Sendable, signed } from '../requests/sendable.ts'

/** Something that somebody could read, and where. */
export type Written = { readonly where: string; readonly text: string }

/** Keeps everything that is answered and printed, and notes what is secret in it. */
export type Texts = {
  readonly all: Written[]
  /** The answer is kept, but for a token that it is meant to tell. */
  ask(origin: string, request: Asked): Promise<Answer>
  /** `cambist …`; what it prints is kept, but for the secrets that it is meant to show. */
  command(args: readonly string[], env: Readonly<Record<string, string>>, shows?: RegExp): Promise<Ended>
}

export type Asked = {
  readonly method?: string
  readonly target: string
  readonly body?: object | string
  readonly headers?: readonly Header[]
  readonly as?: ToldSecret
}

export function keepTexts(secrets: Set<string>): Texts {
  const all: Written[] = []
  return {
    all,
    ask: async (origin, asked) => {
      const request = requestOf(asked)
      const [, signature] = request.headers.find(([name]) => asked.as && name === 'X-API-SIGN') ?? []
      if (signature !== undefined) secrets.add(signature)
      const line = openRawLine(Number(new URL(origin).port))
      const answer = await line.ask(bytesOf(request))
      line.close()
      const token: unknown = answer.json?.data?.token
      if (typeof token === 'string') secrets.add(token)
      const told = `${JSON.stringify([...answer.headers])} ${answer.bytes.toString('latin1')}`
      const text = typeof token === 'string' ? told.replace(`"token":"${token}"`, '') : told
      all.push({ where: `the answer ${answer.status} to ${request.method} ${asked.target}`, text })
      return answer
    },
    command: async (args, env, shows) => {
      const ended = await run('service/src/cli.ts', args, env)
      const [line = '', shown] = shows?.exec(ended.output) ?? []
      if (shown !== undefined) secrets.add(shown)
      all.push({ where: `cambist ${args.join(' ')}`, text: ended.output.replace(line, '') })
      return ended
    },
  }
}

function requestOf({ method, target, body, headers = [], as }: Asked): Sendable {
  const text = typeof body === 'object' ? JSON.stringify(body) : (body ?? '')
  const request: Sendable = {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    target,
    headers: body === undefined ? headers : [['Content-Type', 'application/json'], ...headers],
    body: Buffer.from(text),
  }
  return as === undefined ? request : signed(request, as)
}
