import { eventually } from '../../harness/eventually.ts'

/** A browser that is signed in, and what its owner has made. */
export type KnownOwner = {
  readonly cookie: string
  readonly origin: string
  readonly keys: string[]
  readonly webhooks: string[]
}

/** Signs in by the mail in the sandbox's mailbox, as somebody without orders: nothing is sent to the receivers made here. */
export async function signInOwner(origin: string): Promise<KnownOwner> {
  const email = 'owner@example.test'
  const say = async (path: string, body: object, cookie = '') => {
    const headers = {
      Origin: origin,
      'Content-Type': 'application/json',
      ...(cookie !== '' && { Cookie: cookie }),
    }
    const response = await fetch(`${origin}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    if (!response.ok) throw new Error(await response.text())
    return response.headers
      .getSetCookie()
      .map((each) => each.split(';')[0])
      .join('; ')
  }
  const asking = await say('/account/sign-in-links', { email })
  const token = await eventually('the link has come', async () => {
    const mails = await (await fetch(`${origin}/sandbox/mail`)).text()
    const [, found] = /#token=([\w-]{43})/.exec(mails) ?? []
    if (found === undefined) throw new Error('not yet')
    return found
  })
  const cookie = await say('/account/session', { token }, asking)
  return { cookie, origin, keys: [], webhooks: [] }
}
