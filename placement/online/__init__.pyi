from placement.online.simulation import CAUSES as CAUSES
from placement.online.simulation import Latencies as Latencies
from placement.online.simulation import spawn_streams as spawn_streams
from placement.online.simulation import summarise as summarise
