import type { InstantMs } from '../domain/time.ts'

/** One message for one receiver, by Standard Webhooks 1.0 (https://www.standardwebhooks.com). */
export type WebhookCall = {
  readonly url: string
  /** The same on every attempt: receivers know a repetition by it. */
  readonly id: string
  /** The bytes that are signed and sent, JSON. */
  readonly body: string
  /** `whsec_…`; while two live, the message is signed with both. */
  readonly secrets: readonly string[]
  /** By the wall clock: receivers compare it with theirs. */
  readonly atWallMs: InstantMs
}

/** What came of one attempt. Only a status from 200 to 299 means that the receiver has the message. */
export type WebhookAnswer =
  | { readonly kind: 'answered'; readonly status: number; readonly head: string }
  /** Nothing was sent: the URL leads where we do not go. */
  | { readonly kind: 'forbidden'; readonly why: string }
  /** No answer, or none in time: it may have arrived. */
  | { readonly kind: 'failed'; readonly why: string }

export type WebhookChannel = {
  /** Never rejects, and ends within its time limit whatever the receiver does. */
  deliver(call: WebhookCall): Promise<WebhookAnswer>
  close(): Promise<void>
}

/** A rendered mail. No text of a customer's stands in a header. */
export type Mail = {
  /** The same on every attempt, so that a mailbox can drop a repetition (RFC 5322 §3.6.4). */
  readonly messageId: string
  readonly to: string
  readonly subject: string
  readonly text: string
  readonly html: string
  /** Where one click unsubscribes (RFC 8058); null for mails that cannot be unsubscribed from. */
  readonly unsubscribeUrl: string | null
}

/** What the mail server said. */
export type MailAnswer =
  | { readonly kind: 'accepted'; readonly said: string }
  /** For good: to this address nothing can be sent. */
  | { readonly kind: 'refused'; readonly said: string }
  /** Not now, or no answer: it may have been taken. `mayBeContent`: it was refused when it had been heard, and another may be taken. */
  | { readonly kind: 'failed'; readonly why: string; readonly mayBeContent?: true }
  /** By us, with `close`, which says nothing about the mail server. `mayHaveIt`: it had begun to take the mail. */
  | { readonly kind: 'cut_off'; readonly mayHaveIt: boolean }

export type MailChannel = {
  /** Never rejects, and ends within its time limit. */
  send(mail: Mail): Promise<MailAnswer>
  /** Sends nothing more, and cuts off what is under way: where the mail server takes the mail already, after a moment. */
  close(): Promise<void>
}
