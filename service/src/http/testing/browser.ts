import { parseSetCookie } from 'cookie'
import type { Answer } from './answer.ts'

type Send = (
  method: string,
  target: string,
  options: { readonly headers: Readonly<Record<string, string>>; readonly body?: string },
) => Promise<Answer>

/** What a browser does with cookies and Origin, for tests of what owners do. */
export type Browser = {
  readonly cookies: Map<string, string>
  get(target: string): Promise<Answer>
  /** As a page of the service would; `headers` replace what the browser sends by itself. */
  send(
    method: string,
    target: string,
    body?: object,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Answer>
}

export function openBrowser(send: Send, origin: () => string): Browser {
  const cookies = new Map<string, string>()
  const go = async (
    method: string,
    target: string,
    body: object | undefined,
    headers: Readonly<Record<string, string>>,
  ) => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await send(method, target, {
      headers: {
        ...(cookie !== '' && { Cookie: cookie }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    for (const text of answer.headers.getSetCookie()) {
      const { name, value = '', maxAge } = parseSetCookie(text)
      if (maxAge === 0) cookies.delete(name)
      else cookies.set(name, value)
    }
    return answer
  }
  return {
    cookies,
    get: (target) => go('GET', target, undefined, {}),
    send: (method, target, body, headers = { Origin: origin(), 'Sec-Fetch-Site': 'same-origin' }) =>
      go(method, target, body, headers),
  }
}

/** What stands behind `#token=`. */
export function tokenOf(link: string): string {
  return new URLSearchParams(new URL(link).hash.slice(1)).get('token') ?? ''
}
