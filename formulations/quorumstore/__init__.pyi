from formulations.quorumstore.enumeration import TieEnvelope as TieEnvelope
from formulations.quorumstore.enumeration import TieRange as TieRange
from formulations.quorumstore.enumeration import tie_envelope as tie_envelope
from formulations.quorumstore.keys import KeysSummary as KeysSummary
from formulations.quorumstore.keys import solve_keys as solve_keys
from formulations.quorumstore.one_key import QuorumMethod as QuorumMethod
from formulations.quorumstore.one_key import place as place
