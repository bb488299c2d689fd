import { NodeTrouble } from '../../../src/chains/chain.ts'

/**
 * How a chain asks its simulated node. Whoever hands one out may delay a question, lose its answer, or carry it to
 * another thread; the chain itself cannot tell.
 */
export type Line<Node> = <Name extends NameOfQuestion<Node>>(
  name: Name,
  ...asked: Asked<Node, Name>
) => Promise<Answer<Node, Name>>

type NameOfQuestion<Node> = {
  [Name in keyof Node]: Node[Name] extends (...asked: never[]) => unknown ? Name : never
}[keyof Node] &
  string

type Asked<Node, Name extends keyof Node> = Node[Name] extends (...asked: infer Parts) => unknown
  ? Parts
  : never
type Answer<Node, Name extends keyof Node> = Node[Name] extends (...asked: never[]) => infer Value
  ? Awaited<Value>
  : never

/** The node did not answer: it may have heard the question or not. */
export class LineFailed extends NodeTrouble {}

/** A line that never fails. */
export function directLine<Node>(node: Node): Line<Node> {
  return async (name, ...asked) => {
    const question = node[name] as (...asked: unknown[]) => unknown
    return (await question.apply(node, asked)) as never
  }
}
